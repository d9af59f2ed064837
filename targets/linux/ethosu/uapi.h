/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The interface of /dev/ethosu0 in the Linux guest on QEMU: a stand-in for Arm's out-of-tree
 * driver.
 *
 * It is ours. The numbers and structures of Arm's driver 26.05 are not public, so that a program
 * built with its header does not run here, nor one built with this one on a board; the seam is
 * the driver library's C++ API above. What is Arm's are the rules (its direct driver, COP2):
 *
 *   - Three kinds of file descriptor come back from ioctls: buffers and networks of the device,
 *     inferences of a network. Each keeps what it needs alive; all are close-on-exec.
 *   - The buffers of one call are one contiguous batch, each rounded up to 16 bytes, in the order
 *     of the call. A size of 0 is EINVAL.
 *   - The inputs of an inference are buffers of one batch in ascending order, from which the NPU's
 *     region 3 begins at the first and ends with the last; the outputs and region 4 likewise.
 *     Region 0 is the constant buffer, region 1 the intermediate one, region 2 SRAM of the device.
 *   - A descriptor of 0 or less for the constant or intermediate buffer says that there is none.
 *   - A network is the whole of Vela's COP2 container. COP1, another NPU's CONFIG or ID, features
 *     other than 2, a cache beyond the SRAM, a stream that is empty, no whole number of words, at
 *     no multiple of 16, or longer than 16 MiB: EINVAL, and the kernel's log says why.
 *   - poll() of an inference says POLLIN when it has ended, whatever its end.
 *
 * All pointers are u64, all fields little-endian; reserved fields must be 0 (EINVAL). There is no
 * compat mode.
 */
#ifndef HIL_ETHOSU_UAPI_H
#define HIL_ETHOSU_UAPI_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define HIL_ETHOSU_DEVICE "/dev/ethosu0"
#define HIL_ETHOSU_VERSION 1

#define HIL_ETHOSU_ALIGNMENT 16          /* of every buffer in its batch */
#define HIL_ETHOSU_BATCH_MAX 256         /* buffers of one call; inputs, outputs of an inference */
#define HIL_ETHOSU_STREAM_MAX (16 << 20) /* bytes of a command stream */
#define HIL_ETHOSU_PMU_MAX 8             /* counters of an Ethos-U85 */
#define HIL_ETHOSU_MESSAGE_MAX 192       /* with the zero at its end */

/* ---- of the device ----------------------------------------------------------------------- */

/* EIO: the NPU's model does not answer. */
struct hil_ethosu_capabilities {
  __u32 version;    /* HIL_ETHOSU_VERSION */
  __u32 config;     /* register CONFIG: log2 of the MACs [3:0], product [31:28] */
  __u32 id;         /* register ID: architecture version [31:16] */
  __u32 reserved;   /* 0 */
  __u64 sram_bytes; /* of the device, for region 2 */
};
#define HIL_ETHOSU_CAPABILITIES _IOR('U', 0x80, struct hil_ethosu_capabilities)

/*
 * EINVAL: no buffer, more than HIL_ETHOSU_BATCH_MAX, a size of 0. ENOMEM: no such contiguous
 * memory. The memory is zero. All descriptors are made, or none.
 */
struct hil_ethosu_create_buffers {
  __u64 sizes; /* const __u64[count], bytes */
  __u64 fds;   /* __s32[count], written */
  __u32 count;
  __u32 reserved; /* 0 */
};
#define HIL_ETHOSU_CREATE_BUFFERS _IOWR('U', 0x81, struct hil_ethosu_create_buffers)

/* Returns the new descriptor. EINVAL: see above. EFBIG: more than its longest stream can be. */
struct hil_ethosu_create_network {
  __u64 data; /* const __u8[size]: from "COP2" to the end */
  __u64 size;
};
#define HIL_ETHOSU_CREATE_NETWORK _IOW('U', 0x82, struct hil_ethosu_create_network)

/* ---- of a buffer ------------------------------------------------------------------------- */

/*
 * read(), write(), pread(), pwrite() and lseek() work within `size`: a read beyond gives fewer
 * bytes, or 0; a write fewer, or ENOSPC. While an inference works on a buffer, its content is
 * what the NPU has written so far.
 */
struct hil_ethosu_buffer_info {
  __u64 size;   /* as asked for */
  __u64 offset; /* in its batch, bytes */
};
#define HIL_ETHOSU_BUFFER_INFO _IOR('U', 0x90, struct hil_ethosu_buffer_info)

/* ---- of a network ------------------------------------------------------------------------ */

struct hil_ethosu_network_info {
  __u32 config; /* that it was compiled for */
  __u32 id;
  __u64 cache_bytes; /* of SRAM, region 2; 0: not used */
  __u64 stream_bytes;
};
#define HIL_ETHOSU_NETWORK_INFO _IOR('U', 0xa0, struct hil_ethosu_network_info)

/*
 * Returns the new descriptor; the inference is in the device's queue. EINVAL: descriptors of no
 * buffer, of several batches, or not ascending; too many. EBADF: no descriptors at all. No inputs,
 * or no outputs: allowed, region 3 or 4 is not there then, and the kernel's log warns.
 */
struct hil_ethosu_create_inference {
  __u64 ifm_fds; /* const __s32[ifm_count] */
  __u64 ofm_fds; /* const __s32[ofm_count] */
  __u32 ifm_count;
  __u32 ofm_count;
  __s32 intermediate_fd;                /* <= 0: none */
  __s32 constant_fd;                    /* <= 0: none */
  __u32 cycle_counter;                  /* 0, 1 */
  __u32 pmu_events[HIL_ETHOSU_PMU_MAX]; /* 0: none */
  __u32 reserved;                       /* 0 */
};
#define HIL_ETHOSU_CREATE_INFERENCE _IOW('U', 0xa1, struct hil_ethosu_create_inference)

/* ---- of an inference --------------------------------------------------------------------- */

enum hil_ethosu_state {
  HIL_ETHOSU_OK = 0,
  HIL_ETHOSU_ERROR = 1,    /* the NPU stopped: npu_status, qread, message */
  HIL_ETHOSU_RUNNING = 2,  /* or waiting in the queue */
  HIL_ETHOSU_REJECTED = 3, /* nothing was run: message */
  HIL_ETHOSU_ABORTED = 4   /* cancelled */
};

/* Counters are 0: the NPU's model gives results, not time. */
struct hil_ethosu_inference_status {
  __u32 state;      /* enum hil_ethosu_state */
  __u32 npu_status; /* register STATUS */
  __u32 qread;      /* register QREAD: bytes of the command stream that were read */
  __u32 reserved;   /* 0 */
  __u64 cycles;
  __u64 pmu_counts[HIL_ETHOSU_PMU_MAX];
  char message[HIL_ETHOSU_MESSAGE_MAX]; /* UTF-8; empty when there is nothing to say */
};
#define HIL_ETHOSU_INFERENCE_STATUS _IOR('U', 0xb0, struct hil_ethosu_inference_status)

/*
 * Its state is ABORTED from now on, unless it had ended (then nothing happens). The NPU's model
 * cannot be stopped from here: what it works on stays its own until it has answered, and the next
 * inference waits for that.
 */
#define HIL_ETHOSU_INFERENCE_CANCEL _IO('U', 0xb1)

#endif
