/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What the parts of the module know of each other. Who works on what is counted by krefs. */
#ifndef HIL_ETHOSU_DRIVER_H
#define HIL_ETHOSU_DRIVER_H

#include <linux/kref.h>
#include <linux/miscdevice.h>
#include <linux/mutex.h>
#include <linux/types.h>
#include <linux/virtio.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "uapi.h"

#define ETHOSU_NAME "ethosu0"
/* As in Arm's direct driver; 2 is SRAM of the device. */
enum { REGION_CONSTANT, REGION_INTERMEDIATE, REGION_SRAM, REGION_IFM, REGION_OFM, REGIONS };
/* Region 2: more than any memory mode of Vela uses for an Ethos-U85. */
#define ETHOSU_SRAM_BYTES (4 << 20)

struct ethosu_mailbox;

/* There is one, for ever: the module cannot be unloaded. */
struct ethosu_device {
  struct virtio_device* virtio;
  struct device* dma; /* whose memory is the guest's RAM, where the NPU's model works */
  struct miscdevice misc;
  struct workqueue_struct* queue; /* of inferences, one at a time */
  void* sram;
  dma_addr_t sram_at;

  /* the doorbell */
  struct mutex lock; /* one call at a time */
  struct virtqueue *answers, *requests;
  struct ethosu_mailbox* mailbox;
  dma_addr_t mailbox_at;
  wait_queue_head_t answered;
  u32 sequence, answer;
  unsigned int received; /* bytes of the next answer */
  u8 incoming[4], *partial;
  u8* ring;

  /* its NPU, once it has said so */
  bool identified;
  u32 config, id;
};

struct ethosu_region {
  u64 address, bytes;
};

/* How a command stream ended, as harness/npu/doorbell.py says it. */
enum ethosu_result { RESULT_OK, RESULT_FAULT, RESULT_REFUSED, RESULT_UNSUPPORTED };

struct ethosu_outcome {
  u32 result, npu_status, qread;
  u64 cycles;
  char message[HIL_ETHOSU_MESSAGE_MAX];
};

/* Contiguous memory of the device, cut into buffers. */
struct ethosu_batch {
  struct kref refs;
  struct device* dma;
  u8* data;
  dma_addr_t at;
  size_t bytes;
};

struct ethosu_buffer {
  struct ethosu_batch* batch;
  u64 offset, size;
};

struct ethosu_network {
  struct kref refs;
  struct ethosu_device* device;
  u32 config, id;
  u64 cache_bytes;
  void* stream;
  dma_addr_t at;
  size_t bytes;
};

/* doorbell.c */
int ethosu_doorbell_start(struct ethosu_device* device);
/* -EIO: nobody answers. -EINTR, of a process that is ended. */
int ethosu_identify(struct ethosu_device* device);
/* Waits for as long as it takes. */
void ethosu_run(struct ethosu_device* device, u64 commands, u64 bytes,
                const struct ethosu_region* regions, struct ethosu_outcome* outcome);

/* buffer.c */
long ethosu_create_buffers(struct ethosu_device* device,
                           struct hil_ethosu_create_buffers __user* asked);
/* The buffer behind a descriptor, whose file is to be put; an ERR_PTR for any other. */
struct ethosu_buffer* ethosu_buffer_get(int fd, struct file** file);
void ethosu_batch_put(struct ethosu_batch* batch);

/* network.c */
long ethosu_create_network(struct ethosu_device* device,
                           struct hil_ethosu_create_network __user* asked);
void ethosu_network_put(struct ethosu_network* network);

/* inference.c */
long ethosu_create_inference(struct ethosu_network* network,
                             struct hil_ethosu_create_inference __user* asked);

#endif
