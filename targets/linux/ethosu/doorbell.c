// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * The doorbell: how a guest reaches an NPU that is a program on the host. The format is that of
 * targets/runner/ethosu/doorbell.h, which tells it whole; here the bytes go through the two queues
 * of a virtio console (Virtual I/O Device, version 1.2, 5.3), and memory is the guest's RAM.
 */
#include <linux/dma-mapping.h>
#include <linux/minmax.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/version.h>
#include <linux/virtio_config.h>

#include "driver.h"

#define RING_MAGIC 0x474e4952
#define MAILBOX_MAGIC 0x55504e48
#define DOORBELL_VERSION 1
#define MAILBOX_REGIONS 8
#define IDENTIFY_SECONDS 5

enum { COMMAND_IDENTIFY = 1, COMMAND_RUN = 2 };

struct ring {
  __le32 magic, sequence;
  __le64 mailbox;
};

struct ethosu_mailbox {
  __le32 magic, version, command;
  __le32 result, config, id, npu_status, qread; /* the host's */
  __le64 commands, commands_bytes;
  __le32 region_count, reserved;
  struct {
    __le64 address, bytes;
  } regions[MAILBOX_REGIONS];
  __le64 cycles; /* the host's, and this: */
  char message[HIL_ETHOSU_MESSAGE_MAX];
};
static_assert(sizeof(struct ring) == 16);
static_assert(offsetof(struct ethosu_mailbox, commands) == 32);
static_assert(offsetof(struct ethosu_mailbox, regions) == 56);
static_assert(offsetof(struct ethosu_mailbox, cycles) == 184);
static_assert(sizeof(struct ethosu_mailbox) == 384);

/* Room for the rest of an answer, of which the host may send pieces. */
static void want_answer(struct ethosu_device* device) {
  struct scatterlist list;

  sg_init_one(&list, device->partial, sizeof(device->incoming) - device->received);
  if (!virtqueue_add_inbuf(device->answers, &list, 1, device, GFP_ATOMIC))
    virtqueue_kick(device->answers);
}

static void answer_came(struct virtqueue* queue) {
  struct ethosu_device* device = queue->vdev->priv;
  unsigned int length;

  while (virtqueue_get_buf(queue, &length)) {
    length = min_t(unsigned int, length, sizeof(device->incoming) - device->received);
    memcpy(device->incoming + device->received, device->partial, length);
    device->received += length;
    if (device->received == sizeof(device->incoming)) {
      device->received = 0;
      WRITE_ONCE(device->answer, le32_to_cpup((__le32*)device->incoming));
      wake_up(&device->answered);
    }
    want_answer(device);
  }
}

static void request_gone(struct virtqueue* queue) {
  unsigned int length;

  while (virtqueue_get_buf(queue, &length))
    ;
}

static int find_queues(struct ethosu_device* device) {
  struct virtqueue* queues[2];
  int error;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
  struct virtqueue_info wanted[] = {
      {"answers", answer_came},
      {"requests", request_gone},
  };

  error = virtio_find_vqs(device->virtio, 2, queues, wanted, NULL);
#else
  static const char* const names[] = {"answers", "requests"};
  vq_callback_t* called[] = {answer_came, request_gone};

  error = virtio_find_vqs(device->virtio, 2, queues, called, names, NULL);
#endif
  if (!error) {
    device->answers = queues[0];
    device->requests = queues[1];
  }
  return error;
}

int ethosu_doorbell_start(struct ethosu_device* device) {
  int error;

  mutex_init(&device->lock);
  init_waitqueue_head(&device->answered);
  device->mailbox =
      dma_alloc_coherent(device->dma, sizeof(*device->mailbox), &device->mailbox_at, GFP_KERNEL);
  device->partial = kmalloc(sizeof(device->incoming), GFP_KERNEL);
  device->ring = kmalloc(sizeof(struct ring), GFP_KERNEL);
  if (!device->mailbox || !device->partial || !device->ring) return -ENOMEM;
  error = find_queues(device);
  if (error) return error;
  virtio_device_ready(device->virtio);
  want_answer(device);
  return 0;
}

/* With the lock held: the mailbox is as it should be but for its head. */
static int ring(struct ethosu_device* device, u32 command) {
  struct ring* ring = (struct ring*)device->ring;
  struct ethosu_mailbox* box = device->mailbox;
  struct scatterlist list;
  int error;

  box->magic = cpu_to_le32(MAILBOX_MAGIC);
  box->version = cpu_to_le32(DOORBELL_VERSION);
  box->command = cpu_to_le32(command);
  box->result = cpu_to_le32(RESULT_REFUSED);
  box->message[0] = '\0';
  ring->magic = cpu_to_le32(RING_MAGIC);
  ring->sequence = cpu_to_le32(++device->sequence);
  ring->mailbox = cpu_to_le64(device->mailbox_at);
  dma_wmb();
  sg_init_one(&list, ring, sizeof(*ring));
  error = virtqueue_add_outbuf(device->requests, &list, 1, device, GFP_KERNEL);
  if (!error) virtqueue_kick(device->requests);
  return error;
}

static bool was_answered(struct ethosu_device* device) {
  return READ_ONCE(device->answer) == device->sequence;
}

int ethosu_identify(struct ethosu_device* device) {
  long left;
  int error;

  /* Not to wait for a job, which may never be answered. */
  if (smp_load_acquire(&device->identified)) return 0;
  error = mutex_lock_interruptible(&device->lock);
  if (error) return error;
  if (device->identified) goto out;
  error = ring(device, COMMAND_IDENTIFY);
  if (error) goto out;
  left = wait_event_interruptible_timeout(device->answered, was_answered(device),
                                          IDENTIFY_SECONDS * HZ);
  if (left <= 0) {
    error = left ? -EINTR : -EIO;
    dev_err(device->misc.this_device, "the NPU does not answer\n");
    goto out;
  }
  dma_rmb();
  device->config = le32_to_cpu(device->mailbox->config);
  device->id = le32_to_cpu(device->mailbox->id);
  smp_store_release(&device->identified, true);
out:
  mutex_unlock(&device->lock);
  return error;
}

void ethosu_run(struct ethosu_device* device, u64 commands, u64 bytes,
                const struct ethosu_region* regions, struct ethosu_outcome* outcome) {
  struct ethosu_mailbox* box = device->mailbox;
  unsigned int i;

  mutex_lock(&device->lock);
  box->commands = cpu_to_le64(commands);
  box->commands_bytes = cpu_to_le64(bytes);
  box->region_count = cpu_to_le32(REGIONS);
  box->reserved = 0;
  for (i = 0; i < MAILBOX_REGIONS; i++) {
    box->regions[i].address = cpu_to_le64(i < REGIONS ? regions[i].address : 0);
    box->regions[i].bytes = cpu_to_le64(i < REGIONS ? regions[i].bytes : 0);
  }
  if (!ring(device, COMMAND_RUN)) wait_event_idle(device->answered, was_answered(device));
  dma_rmb();
  outcome->result = le32_to_cpu(box->result);
  outcome->npu_status = le32_to_cpu(box->npu_status);
  outcome->qread = le32_to_cpu(box->qread);
  outcome->cycles = le64_to_cpu(box->cycles);
  strscpy(outcome->message, box->message, sizeof(outcome->message));
  mutex_unlock(&device->lock);
}
