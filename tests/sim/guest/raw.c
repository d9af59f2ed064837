// Uses /dev/ethosu0 by its ioctls alone, in the runner's place: as its program says that it is
// given. A row is "NAME: value"; what is to be seen is for the test to say.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "targets/linux/ethosu/uapi.h"

enum { kMost = 8 };
// Milliseconds. The first inference of a fresh home waits until the model is compiled, which took
// more than 20 s beside four other programs.
enum { kPatience = 300000 };

static int device;

static void row(const char* name, long value) { printf("%s: %ld\n", name, value); }

// What a call gave, or the error's number, negative.
static long told(long result) { return result < 0 ? -errno : result; }

static uint8_t* whole(const char* name, size_t* size) {
  FILE* file = fopen(name, "rb");
  if (file == NULL) exit(3);
  uint8_t* data = malloc(1 << 20);
  *size = fread(data, 1, 1 << 20, file);
  fclose(file);
  return data;
}

static uint8_t* input(int number, size_t* size) {
  char name[32];
  snprintf(name, sizeof(name), "s0i%d.bin", number);
  return whole(name, size);
}

static long buffers(const uint64_t* sizes, uint32_t count, int32_t* fds) {
  struct hil_ethosu_create_buffers asked = {(uintptr_t)sizes, (uintptr_t)fds, count, 0};
  return told(ioctl(device, HIL_ETHOSU_CREATE_BUFFERS, &asked));
}

static int32_t buffer(uint64_t size) {
  int32_t fd = -1;
  if (size > 0 && buffers(&size, 1, &fd) < 0) exit(4);
  return fd;
}

static long network(const void* data, size_t size) {
  struct hil_ethosu_create_network asked = {(uintptr_t)data, size};
  return told(ioctl(device, HIL_ETHOSU_CREATE_NETWORK, &asked));
}

static long inference(long of, const int32_t* ifms, uint32_t inputs, const int32_t* ofms,
                      uint32_t outputs, int32_t intermediate, int32_t constant) {
  struct hil_ethosu_create_inference asked = {.ifm_fds = (uintptr_t)ifms,
                                              .ofm_fds = (uintptr_t)ofms,
                                              .ifm_count = inputs,
                                              .ofm_count = outputs,
                                              .intermediate_fd = intermediate,
                                              .constant_fd = constant};
  return told(ioctl((int)of, HIL_ETHOSU_CREATE_INFERENCE, &asked));
}

static int ended(long fd, int milliseconds) {
  struct pollfd asked = {(int)fd, POLLIN, 0};
  return poll(&asked, 1, milliseconds) == 1 && asked.revents == POLLIN;
}

static struct hil_ethosu_inference_status status(long fd) {
  struct hil_ethosu_inference_status found = {.state = 99};
  if (ioctl((int)fd, HIL_ETHOSU_INFERENCE_STATUS, &found) != 0) exit(5);
  return found;
}

// "RUN first scratch inputs outputs times sizes...": the network is the input `first`, then come
// its weights and what it is given; its outputs are named after the network's number.
static void run(const char* words) {
  uint64_t scratch, sizes[2 * kMost];
  uint32_t inputs, outputs, times;
  int first, at;
  sscanf(words, "RUN %d %lu %u %u %u%n", &first, &scratch, &inputs, &outputs, &times, &at);
  for (uint32_t i = 0, next; i < inputs + outputs; ++i, at += next)
    sscanf(words + at, " %lu%n", &sizes[i], (int*)&next);
  size_t bytes;
  const uint8_t* data = input(first, &bytes);
  const long net = network(data, bytes);
  row("network", net > 0);
  data = input(first + 1, &bytes);
  const int32_t constant = buffer(bytes), intermediate = buffer(scratch);
  if (pwrite(constant, data, bytes, 0) != (ssize_t)bytes) exit(6);
  for (uint32_t time = 0; time < times; ++time) {
    int32_t ifms[kMost], ofms[kMost];
    if (buffers(sizes, inputs, ifms) < 0 || buffers(sizes + inputs, outputs, ofms) < 0) exit(7);
    for (uint32_t i = 0; i < inputs; ++i) {
      data = input(first + 2 + (int)i, &bytes);
      if (write(ifms[i], data, bytes) != (ssize_t)bytes) exit(8);
    }
    const long work = inference(net, ifms, inputs, ofms, outputs, intermediate, constant);
    if (work < 0 || !ended(work, kPatience) || status(work).state != HIL_ETHOSU_OK) {
      row("inference", work);
      if (work >= 0) row("state", status(work).state);
      printf("%s\n", work < 0 ? "" : status(work).message);
      exit(9);
    }
    for (uint32_t i = 0; i < outputs; ++i) {
      uint8_t* out = malloc(sizes[inputs + i]);
      if (pread(ofms[i], out, sizes[inputs + i], 0) != (ssize_t)sizes[inputs + i]) exit(10);
      char name[32];
      snprintf(name, sizeof(name), "net%d-%u.bin", first, i);
      FILE* file = fopen(name, "wb");
      fwrite(out, 1, sizes[inputs + i], file);
      fclose(file);
      free(out);
      close(ofms[i]);
    }
    for (uint32_t i = 0; i < inputs; ++i) close(ifms[i]);
    close((int)work);
  }
  row("inferences", times);
}

static void of_buffers(void) {
  const uint64_t sizes[] = {1, 16, 17}, none[] = {4, 0}, huge = 1ull << 40, endless = ~0ull;
  int32_t fds[3];
  row("batch", buffers(sizes, 3, fds));
  for (int i = 0; i < 3; ++i) {
    struct hil_ethosu_buffer_info info;
    if (ioctl(fds[i], HIL_ETHOSU_BUFFER_INFO, &info) != 0) exit(11);
    printf("buffer: %llu at %llu\n", info.size, info.offset);
  }
  row("no buffer", buffers(sizes, 0, fds));
  row("a size of 0", buffers(none, 2, fds));
  row("too many", buffers(sizes, HIL_ETHOSU_BATCH_MAX + 1, fds));
  row("more than there is", buffers(&huge, 1, fds));
  row("more than can be said", buffers(&endless, 1, fds));
  row("sizes from nowhere", buffers((const uint64_t*)8, 1, fds));
  row("descriptors to nowhere", buffers(sizes, 1, (int32_t*)8));
  char text[32] = "0123456789abcdefXYZ";
  row("a write", told(pwrite(fds[2], text, 17, 0)));
  row("a write over the end", told(pwrite(fds[2], text, 19, 10)));
  row("a write beyond", told(pwrite(fds[2], text, 1, 17)));
  row("a read over the end", told(pread(fds[2], text, 32, 10)));
  printf("read: %.7s\n", text);
  row("a read beyond", told(pread(fds[2], text, 1, 17)));
  row("a neighbour", told(pread(fds[1], text, 16, 0)) == 16 && text[0] == 0 && text[15] == 0);
  row("the end", told(lseek(fds[2], 0, SEEK_END)));
  row("an unknown request", told(ioctl(fds[0], HIL_ETHOSU_INFERENCE_CANCEL)));
}

static void of_networks(void) {
  size_t size;
  uint8_t* good = input(0, &size);
  const struct {
    const char* name;
    int at;  // of the byte that is changed
    uint8_t by;
  } changes[] = {
      {"COP1", 3, 3},
      {"no magic", 0, 1},
      {"version", 4, 3},
      {"its length", 8, 4},
      {"entry type", 16, 3},
      {"entry length", 20, 4},
      {"metadata length", 24, 4},
      {"VEUM", 28, 1},
      {"VEUM version", 32, 2},
      {"VEUM length", 36, 0x10},
      {"MACs", 40, 1},
      {"product", 43, 0x10},
      {"ID", 46, 1},
      {"features", 48, 1},
      {"cache", 55, 1},
  };
  for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); ++i) {
    good[changes[i].at] ^= changes[i].by;
    row(changes[i].name, network(good, size));
    good[changes[i].at] ^= changes[i].by;
  }
  row("cut short", network(good, 40));
  row("no bytes", network(good, 0));
  row("from nowhere", network((void*)8, size));
  row("endless", network(good, 1ull << 40));
  struct hil_ethosu_network_info info;
  const long net = network(good, size);
  row("as it is", net > 0 && ioctl((int)net, HIL_ETHOSU_NETWORK_INFO, &info) == 0);
  printf("network: %08x %08x %llu %llu\n", info.config, info.id, info.cache_bytes,
         info.stream_bytes);
}

static void of_inferences(void) {
  size_t size;
  uint8_t* good = input(0, &size);
  const uint64_t sizes[] = {105, 105};
  int32_t batch[2], other[2], out = buffer(105);
  if (buffers(sizes, 2, batch) < 0 || buffers(sizes, 2, other) < 0) exit(12);
  const long net = network(good, size);
  const int32_t weights = buffer(16), strange = open("/dev/null", O_RDWR);
  row("descending", inference(net, (int32_t[]){batch[1], batch[0]}, 2, &out, 1, 0, weights));
  row("twice", inference(net, (int32_t[]){batch[0], batch[0]}, 2, &out, 1, 0, weights));
  row("two batches", inference(net, (int32_t[]){batch[0], other[1]}, 2, &out, 1, 0, weights));
  row("no descriptor", inference(net, (int32_t[]){batch[0], -1}, 2, &out, 1, 0, weights));
  row("no buffer", inference(net, (int32_t[]){batch[0], strange}, 2, &out, 1, 0, weights));
  row("output is no buffer", inference(net, batch, 2, &strange, 1, 0, weights));
  row("constant is no buffer", inference(net, batch, 2, &out, 1, 0, strange));
  row("of no network", inference(device, batch, 2, &out, 1, 0, weights));
  row("too many", inference(net, batch, HIL_ETHOSU_BATCH_MAX + 1, &out, 1, 0, weights));
  long work = inference(net, batch, 2, &out, 1, -1, weights);
  row("one that ends", ended(work, kPatience));
  row("its state", status(work).state);
  row("cancelled when it has ended", ioctl((int)work, HIL_ETHOSU_INFERENCE_CANCEL));
  row("its state still", status(work).state);
  // Region 3 is only as large as the first input: the NPU stops.
  work = inference(net, batch, 1, &out, 1, 0, weights);
  row("one that stops", ended(work, kPatience));
  struct hil_ethosu_inference_status found = status(work);
  row("state", found.state);
  row("bus error", found.npu_status);
  printf("message: %s\n", found.message);
  work = inference(net, NULL, 0, &out, 1, 0, weights);
  row("one without inputs", ended(work, kPatience) && status(work).state == HIL_ETHOSU_ERROR);
  // A stream of which the first word is none: the model says so, and the device lives on.
  memset(good + 64, 0xff, 4);
  work = inference(network(good, size), batch, 2, &out, 1, 0, weights);
  row("a bad stream", ended(work, kPatience));
  row("state", status(work).state);
  memset(good + 64, 0, 4);
  // All that it needs may be closed while it is at work.
  work = inference(net, batch, 2, &out, 1, 0, weights);
  close(batch[0]), close(batch[1]), close(out), close(weights), close((int)net);
  row("without its descriptors", ended(work, kPatience) && status(work).state == HIL_ETHOSU_OK);
}

static void rules(void) {
  struct hil_ethosu_capabilities found;
  row("capabilities", ioctl(device, HIL_ETHOSU_CAPABILITIES, &found));
  printf("device: %u %08x %08x %llu\n", found.version, found.config, found.id, found.sram_bytes);
  row("an unknown request", told(ioctl(device, HIL_ETHOSU_BUFFER_INFO, &found)));
  of_buffers();
  of_networks();
  of_inferences();
}

// The model does not answer: nobody waits but who wants to, and nothing is kept from ending.
static void dead(void) {
  size_t size;
  const uint8_t* good = input(0, &size);
  const uint64_t sizes[] = {105, 105};
  int32_t batch[2], out = buffer(105), weights = buffer(16);
  if (buffers(sizes, 2, batch) < 0) exit(13);
  const long net = network(good, size);
  const long work = inference(net, batch, 2, &out, 1, 0, weights);
  const long next = inference(net, batch, 2, &out, 1, 0, weights);
  row("ended", ended(work, 500));
  row("state", status(work).state);
  row("cancel", ioctl((int)work, HIL_ETHOSU_INFERENCE_CANCEL));
  row("ended", ended(work, 0));
  row("state", status(work).state);
  row("the next", ended(next, 100));
  row("another network", network(good, size) > 0);
  close((int)work);
}

int main(void) {
  setbuf(stdout, NULL);
  puts("BEGIN");
  size_t size;
  char* words = (char*)whole("program.pte", &size);
  words[size] = '\0';
  device = open(HIL_ETHOSU_DEVICE, O_RDWR | O_NONBLOCK);
  if (device < 0) {
    perror(HIL_ETHOSU_DEVICE);
    return 2;
  }
  for (char* line = strstr(words, "RUN"); line != NULL; line = strstr(line + 1, "RUN")) run(line);
  if (strcmp(words, "RULES") == 0) rules();
  if (strcmp(words, "DEAD") == 0) dead();
  return 0;
}
