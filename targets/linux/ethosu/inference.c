// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* Inferences: one at a time, in the order in which they were made. */
#include <linux/align.h>
#include <linux/anon_inodes.h>
#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "driver.h"

/* ``status`` is changed under the lock; its state leaves RUNNING once. */
struct inference {
  struct kref refs; /* of its file, and of the queue */
  struct ethosu_network* network;
  struct ethosu_batch* batches[REGIONS];
  struct ethosu_region regions[REGIONS];
  struct work_struct work;
  wait_queue_head_t ended;
  spinlock_t lock;
  struct hil_ethosu_inference_status status;
};

static void inference_release(struct kref* refs) {
  struct inference* inference = container_of(refs, struct inference, refs);
  unsigned int i;

  for (i = 0; i < REGIONS; i++) ethosu_batch_put(inference->batches[i]);
  ethosu_network_put(inference->network);
  kfree(inference);
}

static u32 state_of(struct inference* inference) {
  u32 state;

  spin_lock(&inference->lock);
  state = inference->status.state;
  spin_unlock(&inference->lock);
  return state;
}

static void end(struct inference* inference, u32 state, const struct ethosu_outcome* outcome) {
  struct hil_ethosu_inference_status* status = &inference->status;

  spin_lock(&inference->lock);
  if (status->state == HIL_ETHOSU_RUNNING) {
    status->state = state;
    if (outcome) {
      status->npu_status = outcome->npu_status;
      status->qread = outcome->qread;
      status->cycles = outcome->cycles;
      memcpy(status->message, outcome->message, sizeof(status->message));
    }
  }
  spin_unlock(&inference->lock);
  wake_up(&inference->ended);
}

static u32 state_after(u32 result) {
  if (result == RESULT_OK) return HIL_ETHOSU_OK;
  return result == RESULT_FAULT ? HIL_ETHOSU_ERROR : HIL_ETHOSU_REJECTED;
}

static void work_on(struct work_struct* work) {
  struct inference* inference = container_of(work, struct inference, work);
  struct ethosu_network* network = inference->network;
  struct ethosu_outcome outcome = {};

  if (state_of(inference) == HIL_ETHOSU_RUNNING) {
    ethosu_run(network->device, network->at, network->bytes, inference->regions, &outcome);
    if (outcome.result != RESULT_OK)
      dev_err(network->device->misc.this_device, "inference %s: %s\n",
              outcome.result == RESULT_FAULT ? "stopped" : "refused", outcome.message);
    end(inference, state_after(outcome.result), &outcome);
  }
  kref_put(&inference->refs, inference_release);
}

static int inference_file_release(struct inode* inode, struct file* file) {
  struct inference* inference = file->private_data;

  kref_put(&inference->refs, inference_release);
  return 0;
}

static __poll_t inference_poll(struct file* file, poll_table* table) {
  struct inference* inference = file->private_data;

  poll_wait(file, &inference->ended, table);
  return state_of(inference) == HIL_ETHOSU_RUNNING ? 0 : EPOLLIN;
}

static long inference_ioctl(struct file* file, unsigned int command, unsigned long argument) {
  struct inference* inference = file->private_data;
  struct hil_ethosu_inference_status status;

  switch (command) {
    case HIL_ETHOSU_INFERENCE_STATUS:
      spin_lock(&inference->lock);
      status = inference->status;
      spin_unlock(&inference->lock);
      return copy_to_user((void __user*)argument, &status, sizeof(status)) ? -EFAULT : 0;
    case HIL_ETHOSU_INFERENCE_CANCEL:
      end(inference, HIL_ETHOSU_ABORTED, NULL);
      return 0;
    default:
      return -ENOTTY;
  }
}

static const struct file_operations inference_operations = {
    .owner = THIS_MODULE,
    .release = inference_file_release,
    .poll = inference_poll,
    .unlocked_ioctl = inference_ioctl,
};

/* Region ``number`` begins with the first of the buffers and ends with the last. */
static int take(struct inference* inference, unsigned int number, const s32* fds, u32 count) {
  struct ethosu_region* region = &inference->regions[number];
  u64 behind = 0, first = 0;
  u32 i;

  for (i = 0; i < count; i++) {
    struct file* file;
    struct ethosu_buffer* buffer = ethosu_buffer_get(fds[i], &file);
    int error = 0;

    if (IS_ERR(buffer)) return PTR_ERR(buffer);
    if (!i) {
      kref_get(&buffer->batch->refs);
      inference->batches[number] = buffer->batch;
      first = buffer->offset;
    } else if (buffer->batch != inference->batches[number] || buffer->offset < behind) {
      error = -EINVAL;
    }
    behind = buffer->offset + ALIGN(buffer->size, HIL_ETHOSU_ALIGNMENT);
    region->address = buffer->batch->at + first;
    region->bytes = behind - first;
    fput(file);
    if (error) return error;
  }
  return 0;
}

static int take_list(struct inference* inference, unsigned int number, u64 list, u32 count) {
  int error;
  s32* fds;

  if (!count) {
    dev_warn(inference->network->device->misc.this_device, "no %s given\n",
             number == REGION_IFM ? "IFMs" : "OFMs");
    return 0;
  }
  fds = memdup_user(u64_to_user_ptr(list), count * sizeof(*fds));
  if (IS_ERR(fds)) return PTR_ERR(fds);
  error = take(inference, number, fds, count);
  kfree(fds);
  return error;
}

static int take_all(struct inference* inference, const struct hil_ethosu_create_inference* given) {
  struct ethosu_device* device = inference->network->device;
  int error = take_list(inference, REGION_IFM, given->ifm_fds, given->ifm_count);

  if (!error) error = take_list(inference, REGION_OFM, given->ofm_fds, given->ofm_count);
  if (!error && given->constant_fd > 0)
    error = take(inference, REGION_CONSTANT, &given->constant_fd, 1);
  if (!error && given->intermediate_fd > 0)
    error = take(inference, REGION_INTERMEDIATE, &given->intermediate_fd, 1);
  inference->regions[REGION_SRAM] = (struct ethosu_region){device->sram_at, ETHOSU_SRAM_BYTES};
  return error;
}

long ethosu_create_inference(struct ethosu_network* network,
                             struct hil_ethosu_create_inference __user* asked) {
  struct hil_ethosu_create_inference given;
  struct inference* inference;
  long fd;

  if (copy_from_user(&given, asked, sizeof(given))) return -EFAULT;
  if (given.ifm_count > HIL_ETHOSU_BATCH_MAX || given.ofm_count > HIL_ETHOSU_BATCH_MAX ||
      given.cycle_counter > 1 || given.reserved)
    return -EINVAL;
  inference = kzalloc(sizeof(*inference), GFP_KERNEL);
  if (!inference) return -ENOMEM;
  kref_init(&inference->refs);
  kref_get(&network->refs);
  inference->network = network;
  inference->status.state = HIL_ETHOSU_RUNNING;
  spin_lock_init(&inference->lock);
  init_waitqueue_head(&inference->ended);
  INIT_WORK(&inference->work, work_on);
  fd = take_all(inference, &given);
  if (!fd) {
    kref_get(&inference->refs); /* before anybody can close it */
    fd = anon_inode_getfd("[ethosu-inference]", &inference_operations, inference,
                          O_RDWR | O_CLOEXEC);
    if (fd >= 0) {
      queue_work(network->device->queue, &inference->work);
      return fd;
    }
    kref_put(&inference->refs, inference_release);
  }
  kref_put(&inference->refs, inference_release);
  return fd;
}
