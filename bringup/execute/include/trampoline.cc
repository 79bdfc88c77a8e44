#include "trampoline.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#if HOST_CALL_TILES
#include <aie_api/aie.hpp>

// A rehearsal leaves the tile in the modes that it was in.
extern "C" void host_call_set_modes(std::int32_t rounding, std::int32_t saturation) {
  aie::set_rounding(static_cast<aie::rounding_mode>(rounding));
  aie::set_saturation(static_cast<aie::saturation_mode>(saturation));
}
#endif

namespace {

// The parent reads these after a crash: begin of every block of the call that runs.
std::int64_t no_addresses[64];
std::int64_t *addresses = no_addresses;
std::int64_t capacity = 64;

enum Fault : std::int64_t { changed = 1, unwritten = 2, memory = 3 };

std::int64_t fault(Fault kind, std::int64_t pointer, std::int64_t element) {
  return kind << 56 | pointer << 48 | element;
}

struct Free {
  void operator()(std::uint8_t *block) const { std::free(block); }
};
using Block = std::unique_ptr<std::uint8_t, Free>;

// Aligned as a vector register wants it; the size is exact, so that the byte behind it is not the kernel's.
Block block_of(std::int64_t bytes) {
  void *made = nullptr;
  if (posix_memalign(&made, 64, static_cast<std::size_t>(bytes)) != 0)
    return nullptr;
  return Block(static_cast<std::uint8_t *>(made));
}

struct Call {
  std::vector<Block> blocks;
  std::vector<std::uint8_t *> pointers;

  bool copy(const host_call::Pointer *rows, std::int32_t count, std::uint8_t *const *from) {
    for (std::int32_t i = 0; i < count; ++i) {
      blocks.push_back(block_of(rows[i].bytes));
      if (!blocks.back())
        return false;
      std::memcpy(blocks.back().get(), from[i], static_cast<std::size_t>(rows[i].bytes));
      pointers.push_back(blocks.back().get());
      if (i < capacity)
        addresses[i] = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(blocks.back().get()));
    }
    return true;
  }
};

// Whether an element of an accumulator holds what fresh memory is filled with. Short types hold any value.
bool is_fresh(const host_call::Pointer &row, const std::uint8_t *at) {
  return row.item >= 4 && std::memcmp(at, &row.fresh, static_cast<std::size_t>(row.item)) == 0;
}

// Other content where the kernel may not look: all of an output, the fresh elements of an accumulator.
bool disturb(const host_call::Pointer &row, std::uint8_t *block) {
  bool done = false;
  for (std::int64_t at = 0; at < row.bytes; at += row.item) {
    if (row.access != host_call::out && !(row.access == host_call::inout && is_fresh(row, block + at)))
      continue;
    for (std::int32_t k = 0; k < row.item; ++k)
      block[at + k] = static_cast<std::uint8_t>(block[at + k] ^ 0x55);
    done = true;
  }
  return done;
}

// The first element that was written and depends on what was there before, -1 = none.
std::int64_t depends(const host_call::Pointer &row, const std::uint8_t *before, const std::uint8_t *first,
                     const std::uint8_t *start, const std::uint8_t *second) {
  const auto item = static_cast<std::size_t>(row.item);
  for (std::int64_t at = 0; at < row.bytes; at += row.item) {
    if (std::memcmp(first + at, second + at, item) == 0)
      continue;
    const bool kept = std::memcmp(before + at, first + at, item) == 0 && std::memcmp(start + at, second + at, item) == 0;
    if (!kept)
      return at / row.item;
  }
  return -1;
}

} // namespace

extern "C" void host_call_share(std::int64_t *page, std::int64_t places) {
  addresses = page;
  capacity = places;
}

namespace host_call {

namespace {

// What the rehearsal of a call left, until the call itself is compared with it.
struct Rehearsal {
  Call call;
  std::vector<std::vector<std::uint8_t>> start;
};
std::unique_ptr<Rehearsal> rehearsal;

std::int64_t rehearse(const Pointer *rows, std::int32_t count, Invoke invoke, std::uint8_t *const *pointers,
                      const std::int64_t *scalars) {
  auto made = std::make_unique<Rehearsal>();
  if (!made->call.copy(rows, count, pointers))
    return fault(memory, 0, 0);
  bool wanted = false;
  for (std::int32_t i = 0; i < count; ++i) {
    std::uint8_t *block = made->call.pointers[static_cast<std::size_t>(i)];
    wanted = disturb(rows[i], block) || wanted;
    made->start.emplace_back(block, block + rows[i].bytes);
  }
  if (!wanted)
    return 0;
  invoke(made->call.pointers.data(), scalars);
  rehearsal = std::move(made);
  return 0;
}

std::int64_t judge(const Pointer *rows, std::int32_t count, std::uint8_t *const *pointers, const Call &call) {
  const std::unique_ptr<Rehearsal> other = std::move(rehearsal);
  for (std::int32_t i = 0; i < count; ++i) {
    const auto n = static_cast<std::size_t>(i);
    const std::uint8_t *now = call.pointers[n];
    if (other) {
      const std::int64_t at = depends(rows[i], pointers[i], now, other->start[n].data(), other->call.pointers[n]);
      if (at >= 0)
        return fault(unwritten, i, at);
    }
    if (rows[i].access != in || std::memcmp(now, pointers[i], static_cast<std::size_t>(rows[i].bytes)) == 0)
      continue;
    std::int64_t at = 0;
    while (now[at] == pointers[i][at])
      ++at;
    return fault(changed, i, at / rows[i].item);
  }
  return 0;
}

} // namespace

std::int64_t run(const Pointer *rows, std::int32_t count, Invoke invoke, std::uint8_t *const *pointers,
                 const std::int64_t *scalars, std::int32_t phase) {
  if (phase == rehearsing)
    return rehearse(rows, count, invoke, pointers, scalars);
  Call call;
  if (!call.copy(rows, count, pointers))
    return fault(memory, 0, 0);
  invoke(call.pointers.data(), scalars);
  if (const std::int64_t found = judge(rows, count, pointers, call))
    return found;
  for (std::int32_t i = 0; i < count; ++i) {
    const std::uint8_t *now = call.pointers[static_cast<std::size_t>(i)];
    const auto bytes = static_cast<std::size_t>(rows[i].bytes);
    if (rows[i].access != in && std::memcmp(now, pointers[i], bytes) != 0)
      std::memcpy(pointers[i], now, bytes);
  }
  return 0;
}

} // namespace host_call
