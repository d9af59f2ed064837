// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Networks: command streams, checked before any of them is run.
 *
 * COP2, all little-endian: "COP2", u16 1, u16 0, u64 bytes behind these 16; an entry, u32 type 1,
 * u32 bytes behind these 24; u32 bytes of metadata; the metadata, "VEUM", u16 1, u16 0, u32 bytes
 * behind these 12 (at least 20), u32 CONFIG, u32 ID, u32 features, u64 cache; the stream. (Measured
 * on Vela 5.1.0's output.)
 */
#include <linux/anon_inodes.h>
#include <linux/dma-mapping.h>
#include <linux/fs.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "driver.h"

#define HEADER 16
#define ENTRY 24
#define METADATA 28
#define SHORTEST_METADATA 32
#define DESCRIPTION 12 /* of the metadata, before it says how long the rest is */
#define SHORTEST_DESCRIPTION 20
#define ENTRY_COMMANDS 1
#define FEATURES 2
#define CONTAINER_MAX (HIL_ETHOSU_STREAM_MAX + 4096)

static u32 word(const u8* data, size_t at) {
  __le32 value;

  memcpy(&value, data + at, sizeof(value));
  return le32_to_cpu(value);
}

static u64 double_word(const u8* data, size_t at) {
  return word(data, at) | (u64)word(data, at + 4) << 32;
}

struct checked {
  u32 config, id;
  u64 cache;
  size_t start, bytes;
};

/* NULL, or what is wrong with the container itself. */
static const char* read_container(const u8* data, size_t size, struct checked* found) {
  u32 metadata;

  if (size >= 4 && !memcmp(data, "COP1", 4))
    return "COP1, of which this device takes none: compile for direct drive (COP2)";
  if (size < 4 || memcmp(data, "COP2", 4)) return "no COP2 container";
  if (size < METADATA + SHORTEST_METADATA) return "a COP2 container that is cut short";
  if (word(data, 4) != 1) return "another version of COP2";
  if (double_word(data, 8) != size - HEADER || word(data, 20) != size - ENTRY)
    return "a COP2 container whose lengths are not its own";
  if (word(data, 16) != ENTRY_COMMANDS) return "no command stream in COP2";
  metadata = word(data, ENTRY);
  if (metadata < SHORTEST_METADATA || metadata > size - METADATA)
    return "COP2 metadata that do not fit";
  if (memcmp(data + METADATA, "VEUM", 4) || word(data, METADATA + 4) != 1 ||
      word(data, METADATA + 8) < SHORTEST_DESCRIPTION ||
      word(data, METADATA + 8) > metadata - DESCRIPTION)
    return "other metadata than VEUM 1.0";
  if (word(data, METADATA + 20) != FEATURES) return "features of COP2 that this device has not";
  found->config = word(data, METADATA + 12);
  found->id = word(data, METADATA + 16);
  found->cache = double_word(data, METADATA + 24);
  found->start = METADATA + metadata;
  found->bytes = size - found->start;
  return NULL;
}

/* NULL, or why the stream is not for this device. */
static const char* check_stream(const struct ethosu_device* device, const struct checked* found) {
  if (!found->bytes || found->bytes % 4)
    return "the command stream is empty, or not a whole number of words";
  if (found->start % HIL_ETHOSU_ALIGNMENT)
    return "the command stream is not at a multiple of 16 bytes";
  if (found->bytes > HIL_ETHOSU_STREAM_MAX) return "the command stream is longer than 16 MiB";
  if (found->config != device->config || found->id != device->id) return "it is for another NPU";
  if (found->cache > ETHOSU_SRAM_BYTES) return "it wants more SRAM than there is";
  return NULL;
}

static void network_release(struct kref* refs) {
  struct ethosu_network* network = container_of(refs, struct ethosu_network, refs);

  dma_free_coherent(network->device->dma, network->bytes, network->stream, network->at);
  kfree(network);
}

void ethosu_network_put(struct ethosu_network* network) {
  kref_put(&network->refs, network_release);
}

static struct ethosu_network* network_of(struct ethosu_device* device, const u8* data,
                                         size_t size) {
  struct checked found = {};
  struct ethosu_network* network;
  const char* wrong = read_container(data, size, &found);

  if (!wrong) wrong = check_stream(device, &found);
  if (wrong) {
    dev_err(device->misc.this_device,
            "network refused: %s (for CONFIG %08x ID %08x; here are %08x %08x)\n", wrong,
            found.config, found.id, device->config, device->id);
    return ERR_PTR(-EINVAL);
  }
  network = kzalloc(sizeof(*network), GFP_KERNEL);
  if (!network) return ERR_PTR(-ENOMEM);
  kref_init(&network->refs);
  network->device = device;
  network->config = found.config;
  network->id = found.id;
  network->cache_bytes = found.cache;
  network->bytes = found.bytes;
  network->stream =
      dma_alloc_coherent(device->dma, found.bytes, &network->at, GFP_KERNEL | __GFP_NOWARN);
  if (!network->stream) {
    kfree(network);
    return ERR_PTR(-ENOMEM);
  }
  memcpy(network->stream, data + found.start, found.bytes);
  return network;
}

static int network_file_release(struct inode* inode, struct file* file) {
  ethosu_network_put(file->private_data);
  return 0;
}

static long network_ioctl(struct file* file, unsigned int command, unsigned long argument) {
  struct ethosu_network* network = file->private_data;
  void __user* user = (void __user*)argument;
  struct hil_ethosu_network_info info = {
      .config = network->config,
      .id = network->id,
      .cache_bytes = network->cache_bytes,
      .stream_bytes = network->bytes,
  };

  switch (command) {
    case HIL_ETHOSU_NETWORK_INFO:
      return copy_to_user(user, &info, sizeof(info)) ? -EFAULT : 0;
    case HIL_ETHOSU_CREATE_INFERENCE:
      return ethosu_create_inference(network, user);
    default:
      return -ENOTTY;
  }
}

static const struct file_operations network_operations = {
    .owner = THIS_MODULE,
    .release = network_file_release,
    .unlocked_ioctl = network_ioctl,
};

long ethosu_create_network(struct ethosu_device* device,
                           struct hil_ethosu_create_network __user* asked) {
  struct hil_ethosu_create_network given;
  struct ethosu_network* network;
  u8* data;
  long fd;

  if (copy_from_user(&given, asked, sizeof(given))) return -EFAULT;
  if (given.size > CONTAINER_MAX) return -EFBIG;
  fd = ethosu_identify(device);
  if (fd) return fd;
  data = vmemdup_user(u64_to_user_ptr(given.data), given.size);
  if (IS_ERR(data)) return PTR_ERR(data);
  network = network_of(device, data, given.size);
  kvfree(data);
  if (IS_ERR(network)) return PTR_ERR(network);
  fd = anon_inode_getfd("[ethosu-network]", &network_operations, network, O_RDWR | O_CLOEXEC);
  if (fd < 0) ethosu_network_put(network);
  return fd;
}
