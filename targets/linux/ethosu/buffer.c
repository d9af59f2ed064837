// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* Buffers: files in contiguous memory that the NPU reaches. */
#include <linux/align.h>
#include <linux/anon_inodes.h>
#include <linux/dma-mapping.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "driver.h"

static void batch_release(struct kref* refs) {
  struct ethosu_batch* batch = container_of(refs, struct ethosu_batch, refs);

  dma_free_coherent(batch->dma, batch->bytes, batch->data, batch->at);
  kfree(batch);
}

void ethosu_batch_put(struct ethosu_batch* batch) {
  if (batch) kref_put(&batch->refs, batch_release);
}

static struct ethosu_batch* batch_create(struct ethosu_device* device, size_t bytes) {
  struct ethosu_batch* batch = kzalloc(sizeof(*batch), GFP_KERNEL);

  if (!batch) return NULL;
  kref_init(&batch->refs);
  batch->dma = device->dma;
  batch->bytes = bytes;
  batch->data = dma_alloc_coherent(batch->dma, bytes, &batch->at, GFP_KERNEL | __GFP_NOWARN);
  if (batch->data) return batch;
  dev_err(device->misc.this_device, "no %zu bytes of contiguous memory (CMA)\n", bytes);
  kfree(batch);
  return NULL;
}

static int buffer_release(struct inode* inode, struct file* file) {
  struct ethosu_buffer* buffer = file->private_data;

  ethosu_batch_put(buffer->batch);
  kfree(buffer);
  return 0;
}

static ssize_t buffer_read(struct file* file, char __user* to, size_t count, loff_t* position) {
  struct ethosu_buffer* buffer = file->private_data;

  return simple_read_from_buffer(to, count, position, buffer->batch->data + buffer->offset,
                                 buffer->size);
}

static ssize_t buffer_write(struct file* file, const char __user* from, size_t count,
                            loff_t* position) {
  struct ethosu_buffer* buffer = file->private_data;

  if (count && *position >= buffer->size) return -ENOSPC;
  return simple_write_to_buffer(buffer->batch->data + buffer->offset, buffer->size, position, from,
                                count);
}

static loff_t buffer_seek(struct file* file, loff_t to, int whence) {
  struct ethosu_buffer* buffer = file->private_data;

  return fixed_size_llseek(file, to, whence, buffer->size);
}

static long buffer_ioctl(struct file* file, unsigned int command, unsigned long argument) {
  struct ethosu_buffer* buffer = file->private_data;
  struct hil_ethosu_buffer_info info = {.size = buffer->size, .offset = buffer->offset};

  if (command != HIL_ETHOSU_BUFFER_INFO) return -ENOTTY;
  return copy_to_user((void __user*)argument, &info, sizeof(info)) ? -EFAULT : 0;
}

static const struct file_operations buffer_operations = {
    .owner = THIS_MODULE,
    .release = buffer_release,
    .read = buffer_read,
    .write = buffer_write,
    .llseek = buffer_seek,
    .unlocked_ioctl = buffer_ioctl,
};

struct ethosu_buffer* ethosu_buffer_get(int fd, struct file** file) {
  *file = fget(fd);
  if (!*file) return ERR_PTR(-EBADF);
  if ((*file)->f_op == &buffer_operations) return (*file)->private_data;
  fput(*file);
  return ERR_PTR(-EINVAL);
}

static struct file* buffer_file(struct ethosu_batch* batch, u64 offset, u64 size) {
  struct ethosu_buffer* buffer = kzalloc(sizeof(*buffer), GFP_KERNEL);
  struct file* file;

  if (!buffer) return ERR_PTR(-ENOMEM);
  file = anon_inode_getfile("[ethosu-buffer]", &buffer_operations, buffer, O_RDWR);
  if (IS_ERR(file)) {
    kfree(buffer);
    return file;
  }
  /* Such files are streams, unless they say otherwise. */
  file->f_mode |= FMODE_LSEEK | FMODE_PREAD | FMODE_PWRITE;
  kref_get(&batch->refs);
  buffer->batch = batch;
  buffer->offset = offset;
  buffer->size = size;
  return file;
}

/* The bytes of all of them; 0 when that makes no sense. */
static size_t batch_bytes(const u64* sizes, u32 count) {
  u64 bytes = 0;
  u32 i;

  for (i = 0; i < count; i++) {
    if (!sizes[i] || sizes[i] > SSIZE_MAX - HIL_ETHOSU_ALIGNMENT ||
        check_add_overflow(bytes, ALIGN(sizes[i], HIL_ETHOSU_ALIGNMENT), &bytes) ||
        bytes > SSIZE_MAX)
      return 0;
  }
  return bytes;
}

struct made {
  struct file* file;
  s32 fd;
};

static void unmake(struct made* made, u32 count) {
  while (count--) {
    put_unused_fd(made[count].fd);
    fput(made[count].file);
  }
}

static int make(struct made* made, struct ethosu_batch* batch, const u64* sizes, u32 count) {
  u64 offset = 0;
  u32 i;

  for (i = 0; i < count; i++) {
    made[i].fd = get_unused_fd_flags(O_CLOEXEC);
    made[i].file = made[i].fd < 0 ? ERR_PTR(made[i].fd) : buffer_file(batch, offset, sizes[i]);
    if (IS_ERR(made[i].file)) {
      if (made[i].fd >= 0) put_unused_fd(made[i].fd);
      unmake(made, i);
      return PTR_ERR(made[i].file);
    }
    offset += ALIGN(sizes[i], HIL_ETHOSU_ALIGNMENT);
  }
  return 0;
}

/* All descriptors are given out, or none. */
static long give(struct ethosu_batch* batch, const u64* sizes, u32 count, s32 __user* fds) {
  struct made* made = kcalloc(count, sizeof(*made), GFP_KERNEL);
  long error;
  u32 i;

  if (!made) return -ENOMEM;
  error = make(made, batch, sizes, count);
  if (error) goto out;
  for (i = 0; i < count && !error; i++) error = put_user(made[i].fd, fds + i);
  if (error) {
    unmake(made, count);
    goto out;
  }
  for (i = 0; i < count; i++) fd_install(made[i].fd, made[i].file);
out:
  kfree(made);
  return error;
}

long ethosu_create_buffers(struct ethosu_device* device,
                           struct hil_ethosu_create_buffers __user* asked) {
  struct hil_ethosu_create_buffers given;
  struct ethosu_batch* batch;
  size_t bytes;
  u64* sizes;
  long error;

  if (copy_from_user(&given, asked, sizeof(given))) return -EFAULT;
  if (!given.count || given.count > HIL_ETHOSU_BATCH_MAX || given.reserved) return -EINVAL;
  sizes = memdup_user(u64_to_user_ptr(given.sizes), given.count * sizeof(*sizes));
  if (IS_ERR(sizes)) return PTR_ERR(sizes);
  bytes = batch_bytes(sizes, given.count);
  error = -EINVAL;
  if (!bytes) goto out;
  batch = batch_create(device, bytes);
  error = -ENOMEM;
  if (!batch) goto out;
  error = give(batch, sizes, given.count, u64_to_user_ptr(given.fds));
  ethosu_batch_put(batch);
out:
  kfree(sizes);
  return error;
}
