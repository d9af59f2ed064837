// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * /dev/ethosu0 of the Linux guest on QEMU. The NPU is a program on the host, which works in this
 * machine's RAM; what it is told goes through a virtio console that this module takes for itself.
 */
#include <linux/dma-mapping.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/virtio_config.h>
#include <linux/virtio_ids.h>

#include "driver.h"

static struct ethosu_device* of(struct file* file) {
  return container_of(file->private_data, struct ethosu_device, misc);
}

static long capabilities(struct ethosu_device* device, void __user* user) {
  struct hil_ethosu_capabilities told = {
      .version = HIL_ETHOSU_VERSION,
      .sram_bytes = ETHOSU_SRAM_BYTES,
  };
  int error = ethosu_identify(device);

  if (error) return error;
  told.config = device->config;
  told.id = device->id;
  return copy_to_user(user, &told, sizeof(told)) ? -EFAULT : 0;
}

static long device_ioctl(struct file* file, unsigned int command, unsigned long argument) {
  void __user* user = (void __user*)argument;

  switch (command) {
    case HIL_ETHOSU_CAPABILITIES:
      return capabilities(of(file), user);
    case HIL_ETHOSU_CREATE_BUFFERS:
      return ethosu_create_buffers(of(file), user);
    case HIL_ETHOSU_CREATE_NETWORK:
      return ethosu_create_network(of(file), user);
    default:
      return -ENOTTY;
  }
}

static const struct file_operations device_operations = {
    .owner = THIS_MODULE,
    .unlocked_ioctl = device_ioctl,
};

/* What was allocated stays when it fails: then the module is of no use, and so is the guest. */
static int probe(struct virtio_device* virtio) {
  struct ethosu_device* device = kzalloc(sizeof(*device), GFP_KERNEL);
  int error;

  if (!device) return -ENOMEM;
  virtio->priv = device;
  device->virtio = virtio;
  device->dma = virtio->dev.parent;
  error = dma_set_coherent_mask(device->dma, DMA_BIT_MASK(64));
  if (error) return error;
  device->sram = dma_alloc_coherent(device->dma, ETHOSU_SRAM_BYTES, &device->sram_at, GFP_KERNEL);
  device->queue = alloc_ordered_workqueue(ETHOSU_NAME, 0);
  if (!device->sram || !device->queue) return -ENOMEM;
  error = ethosu_doorbell_start(device);
  if (error) return error;
  device->misc.minor = MISC_DYNAMIC_MINOR;
  device->misc.name = ETHOSU_NAME;
  device->misc.fops = &device_operations;
  return misc_register(&device->misc);
}

static const struct virtio_device_id consoles[] = {
    {VIRTIO_ID_CONSOLE, VIRTIO_DEV_ANY_ID},
    {},
};

static struct virtio_driver driver = {
    .driver.name = "hil_ethosu",
    .driver.owner = THIS_MODULE,
    .driver.suppress_bind_attrs = true, /* there is no remove() */
    .id_table = consoles,
    .probe = probe,
};

static int __init start(void) { return register_virtio_driver(&driver); }
module_init(start);

MODULE_DEVICE_TABLE(virtio, consoles);
MODULE_DESCRIPTION("An Ethos-U whose work is done on the host");
MODULE_LICENSE("GPL");
