// What ports share whose files, log and build id are a POSIX process's. No heap is used here
// either.
#include "ports/platform.h"

#include <cerrno>
#include <cstring>

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/log.h"

namespace hil::platform {

namespace {

alignas(32) uint8_t method_pool[HIL_METHOD_POOL_BYTES];
alignas(32) uint8_t temp_pool[HIL_TEMP_POOL_BYTES];
alignas(32) uint8_t file_pool[HIL_FILE_POOL_BYTES];

bool write_all(int file, const uint8_t* bytes, size_t count) {
  while (count > 0) {
    const ssize_t written = ::write(file, bytes, count);
    if (written <= 0) return false;
    bytes += written;
    count -= static_cast<size_t>(written);
  }
  return true;
}

bool read_all(int file, Span<uint8_t> out) {
  for (size_t done = 0; done < out.size();) {
    const ssize_t got = ::read(file, out.data() + done, out.size() - done);
    if (got <= 0) return false;
    done += static_cast<size_t>(got);
  }
  return true;
}

Error read_open_file(int file, Arena& pool, Span<const uint8_t>* out, uint64_t* size) {
  struct stat status;
  if (::fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) return Error::AccessFailed;
  *size = static_cast<uint64_t>(status.st_size);
  auto* memory = static_cast<uint8_t*>(pool.allocate(*size, 32));
  if (memory == nullptr) return Error::MemoryAllocationFailed;
  const Span<uint8_t> bytes(memory, static_cast<size_t>(*size));
  *out = Span<const uint8_t>(memory, bytes.size());
  return read_all(file, bytes) ? Error::Ok : Error::AccessFailed;
}

}  // namespace

Pools pools() {
  return {{method_pool, sizeof(method_pool)},
          {temp_pool, sizeof(temp_pool)},
          {file_pool, sizeof(file_pool)}};
}

void write_log(const char* text, size_t length) {
  write_all(STDOUT_FILENO, reinterpret_cast<const uint8_t*>(text), length);
}

Error read_file(const char* path, Arena& pool, Span<const uint8_t>* out, uint64_t* size) {
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return Error::NotFound;
  const Error error = read_open_file(file, pool, out, size);
  ::close(file);
  return error;
}

bool write_file(const char* path, Span<const uint8_t> bytes) {
  const int file = ::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return false;
  const bool written = write_all(file, bytes.data(), bytes.size());
  const bool full = !written && errno == ENOSPC;
  if (full) HIL_LOG(Error, "%s: no space left on the device", path);
  return ::close(file) == 0 && written;
}

Clock clock() { return nullptr; }

StackUse stack_use() { return {}; }

namespace {

Span<const uint8_t> find_build_id(const uint8_t* notes, size_t size) {
  for (size_t at = 0; at + sizeof(ElfW(Nhdr)) <= size;) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes + at, sizeof(note));
    const size_t description = at + sizeof(note) + ((note.n_namesz + 3u) & ~size_t{3});
    if (note.n_type == NT_GNU_BUILD_ID) return {notes + description, note.n_descsz};
    at = description + ((note.n_descsz + 3u) & ~size_t{3});
  }
  return {};
}

int visit_object(dl_phdr_info* object, size_t, void* result) {
  auto& found = *static_cast<Span<const uint8_t>*>(result);
  for (int i = 0; found.empty() && i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = object->dlpi_phdr[i];
    if (header.p_type != PT_NOTE) continue;
    const auto* notes = reinterpret_cast<const uint8_t*>(object->dlpi_addr + header.p_vaddr);
    found = find_build_id(notes, header.p_memsz);
  }
  return 1;  // the first object is the program itself
}

}  // namespace

Span<const uint8_t> build_id() {
  Span<const uint8_t> found;
  ::dl_iterate_phdr(visit_object, &found);
  return found;
}

}  // namespace hil::platform
