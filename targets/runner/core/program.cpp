#include "core/program.h"

#include <cstring>

#include "core/loading.h"
#include "core/log.h"
#include "core/schema.h"

namespace hil {

using loading::invalid;

namespace {

// The extended header: magic, then little-endian u32 length, u64 program size, u64 segment base
// offset, and since length 32 u64 segment data size (executorch/exir/_serialize/_program.py).
constexpr char kHeaderMagic[] = "eh00";
constexpr size_t kHeaderOffset = 8;
constexpr uint32_t kShortHeader = 24;
constexpr uint32_t kFullHeader = 32;

constexpr size_t kIdentifierOffset = 4;
constexpr size_t kIdentifierSize = 4;
constexpr size_t kSmallestFile = kIdentifierOffset + kIdentifierSize;

uint64_t little_endian(const uint8_t* bytes, size_t count) {
  uint64_t value = 0;
  for (size_t i = count; i > 0; --i) value = value << 8 | bytes[i - 1];
  return value;
}

Error check_identifier(Span<const uint8_t> bytes) {
  const char* found = reinterpret_cast<const char*>(bytes.data() + kIdentifierOffset);
  const char* wanted = fb::ProgramIdentifier();
  if (std::memcmp(found, wanted, kIdentifierSize) == 0) return Error::Ok;
  if (std::memcmp(found, "ET", 2) == 0) {
    HIL_LOG(Error, "program version %.4s is not supported, this runner reads %s", found, wanted);
  } else {
    HIL_LOG(Error, "not an ExecuTorch program: identifier %02x%02x%02x%02x, expected %s", bytes[4],
            bytes[5], bytes[6], bytes[7], wanted);
  }
  return Error::InvalidProgram;
}

/// What the verifier does not know.
Error check_content(const fb::Program& root, Span<const uint8_t> segments) {
  if (root.version() != 0) {
    HIL_LOG(Error, "program schema version %u is not supported, this runner reads 0",
            static_cast<unsigned>(root.version()));
    return Error::InvalidProgram;
  }
  const uint32_t count = root.segments() == nullptr ? 0 : root.segments()->size();
  for (uint32_t i = 0; i < count; ++i) {
    const fb::DataSegment& entry = *root.segments()->Get(i);
    if (entry.offset() > segments.size() || entry.size() > segments.size() - entry.offset()) {
      return invalid("a data segment lies outside the file");
    }
  }
  const auto* methods = root.execution_plan();
  return methods == nullptr || methods->size() == 0 ? invalid("it has no method") : Error::Ok;
}

}  // namespace

Error Program::read_header(Span<const uint8_t> bytes) {
  flatbuffer_ = bytes;
  segments_ = {};
  const Span<const uint8_t> header = bytes.sub(kHeaderOffset, kFullHeader);
  if (header.empty() || std::memcmp(header.data(), kHeaderMagic, 4) != 0) return Error::Ok;
  const uint64_t length = little_endian(header.data() + 4, 4);
  if (length < kShortHeader) return invalid("extended header too short");
  const uint64_t program_size = little_endian(header.data() + 8, 8);
  const uint64_t segment_base = little_endian(header.data() + 16, 8);
  const bool has_size = length >= kFullHeader;
  const uint64_t segment_size = has_size ? little_endian(header.data() + 24, 8) : 0;

  const uint64_t end = segment_base > UINT64_MAX - segment_size ? UINT64_MAX
                                                                : segment_base + segment_size;
  const uint64_t needed = end > program_size ? end : program_size;
  if (needed > bytes.size()) {
    HIL_LOG(Error, "program is truncated: %llu bytes expected, %zu present",
            static_cast<unsigned long long>(needed), bytes.size());
    return Error::InvalidProgram;
  }
  if (program_size < kHeaderOffset + length) return invalid("program size in the header");
  flatbuffer_ = bytes.sub(0, static_cast<size_t>(program_size));
  if (segment_base == 0) return Error::Ok;
  if (segment_base < program_size) return invalid("segments overlap the program");
  const size_t base = static_cast<size_t>(segment_base);
  segments_ = bytes.sub(base, has_size ? static_cast<size_t>(segment_size) : bytes.size() - base);
  return Error::Ok;
}

Error Program::load(Span<const uint8_t> bytes) {
  root_ = nullptr;
  if (bytes.size() < kSmallestFile) {
    HIL_LOG(Error, "program is truncated: %zu bytes", bytes.size());
    return Error::InvalidProgram;
  }
  if (reinterpret_cast<uintptr_t>(bytes.data()) % kAlignment != 0) {
    return invalid("its memory is not aligned to 16 bytes");
  }
  HIL_TRY(check_identifier(bytes));
  HIL_TRY(read_header(bytes));
  if (flatbuffer_.size() >= FLATBUFFERS_MAX_BUFFER_SIZE) return invalid("larger than 2 GiB");
  flatbuffers::Verifier verifier(flatbuffer_.data(), flatbuffer_.size());
  if (!fb::VerifyProgramBuffer(verifier)) return invalid("FlatBuffers verification failed");
  const fb::Program* root = fb::GetProgram(flatbuffer_.data());
  HIL_TRY(check_content(*root, segments_));
  root_ = root;
  return Error::Ok;
}

size_t Program::method_count() const {
  return root_ == nullptr || root_->execution_plan() == nullptr ? 0
                                                                : root_->execution_plan()->size();
}

const char* Program::method_name(size_t index) const {
  if (index >= method_count()) return nullptr;
  const auto* name = root_->execution_plan()->Get(static_cast<uint32_t>(index))->name();
  return name == nullptr ? nullptr : name->c_str();
}

const fb::ExecutionPlan* Program::method(const char* name) const {
  for (size_t i = 0; name != nullptr && i < method_count(); ++i) {
    const char* candidate = method_name(i);
    if (candidate != nullptr && std::strcmp(candidate, name) == 0) {
      return root_->execution_plan()->Get(static_cast<uint32_t>(i));
    }
  }
  return nullptr;
}

Error Program::segment(uint64_t index, Span<const uint8_t>* out) const {
  if (root_->segments() == nullptr || index >= root_->segments()->size()) {
    return invalid("data segment index out of range");
  }
  const fb::DataSegment* entry = root_->segments()->Get(static_cast<uint32_t>(index));
  *out = segments_.sub(static_cast<size_t>(entry->offset()), static_cast<size_t>(entry->size()));
  return Error::Ok;
}

Error Program::from_offsets(const fb::SubsegmentOffsets& offsets, uint32_t index, uint64_t nbytes,
                            Span<const uint8_t>* out) const {
  if (!elements_aligned(offsets.offsets())) return invalid("data offsets are not aligned");
  if (offsets.offsets() == nullptr || index >= offsets.offsets()->size()) {
    return invalid("data buffer index out of range");
  }
  Span<const uint8_t> whole;
  HIL_TRY(segment(offsets.segment_index(), &whole));
  const uint64_t offset = offsets.offsets()->Get(index);
  if (offset > whole.size() || nbytes > whole.size() - offset) {
    return invalid("tensor data lies outside its segment");
  }
  *out = Span<const uint8_t>(whole.data() + offset, static_cast<size_t>(nbytes));
  return Error::Ok;
}

Error Program::constant(uint32_t index, uint64_t nbytes, Span<const uint8_t>* out) const {
  const fb::SubsegmentOffsets* in_segment = root_->constant_segment();
  if (in_segment != nullptr && in_segment->offsets() != nullptr &&
      in_segment->offsets()->size() > 0) {
    return from_offsets(*in_segment, index, nbytes, out);
  }
  if (root_->constant_buffer() == nullptr || index >= root_->constant_buffer()->size()) {
    return invalid("constant buffer index out of range");
  }
  const auto* storage = root_->constant_buffer()->Get(index)->storage();
  if (storage == nullptr || nbytes > storage->size()) {
    return invalid("constant buffer smaller than its tensor");
  }
  *out = Span<const uint8_t>(storage->data(), static_cast<size_t>(nbytes));
  return Error::Ok;
}

Error Program::initial_state(uint64_t offsets_index, uint32_t index, uint64_t nbytes,
                             Span<const uint8_t>* out) const {
  const auto* all = root_->mutable_data_segments();
  if (all == nullptr || offsets_index >= all->size()) {
    return invalid("mutable data segment index out of range");
  }
  return from_offsets(*all->Get(static_cast<uint32_t>(offsets_index)), index, nbytes, out);
}

Error Program::delegate_data(const fb::BackendDelegateDataReference& reference,
                             Span<const uint8_t>* out) const {
  if (reference.location() == fb::DataLocation_SEGMENT) return segment(reference.index(), out);
  const auto* inline_data = root_->backend_delegate_data();
  if (reference.location() != fb::DataLocation_INLINE || inline_data == nullptr ||
      reference.index() >= inline_data->size()) {
    return invalid("delegate data index out of range");
  }
  const auto* data = inline_data->Get(reference.index())->data();
  *out = data == nullptr ? Span<const uint8_t>() : Span<const uint8_t>(data->data(), data->size());
  return Error::Ok;
}

Error Program::named_data(const char* key, Span<const uint8_t>* out) const {
  if (root_->named_data() != nullptr) {
    for (const fb::NamedData* entry : *root_->named_data()) {
      if (entry->key() != nullptr && std::strcmp(entry->key()->c_str(), key) == 0) {
        return segment(entry->segment_index(), out);
      }
    }
  }
  return Error::NotFound;
}

}  // namespace hil
