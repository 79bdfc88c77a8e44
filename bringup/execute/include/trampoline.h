// How a kernel is called on the host: every argument in a block of its own, of exactly its size.
//
// Blocks come from the allocator, so that with AddressSanitizer a byte beyond either end is a fault. What the kernel
// may not write is compared afterwards. A rehearsal on a copy whose unread content differs shows whether the result
// depends on memory that nobody wrote.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace host_call {

enum Access : std::int32_t { in = 0, out = 1, inout = 2, any = 3 };

struct Pointer {
  std::int64_t bytes;
  std::int32_t item; // bytes of an element
  std::int32_t access;
  std::uint64_t fresh; // what the simulator fills fresh memory with, for items of 4 and 8 bytes
};

using Invoke = void (*)(std::uint8_t *const *pointers, const std::int64_t *scalars);

enum Phase : std::int32_t { running = 0, rehearsing = 1 };

// Rehearse a call, or run it, which compares it with its rehearsal if there was one.
// 0 = well. Else `fault << 56 | pointer << 48 | element`; fault 1: changed what it only reads, 2: the element depends on
// what was there before, 3: out of memory.
std::int64_t run(const Pointer *rows, std::int32_t count, Invoke invoke, std::uint8_t *const *pointers,
                 const std::int64_t *scalars, std::int32_t phase);

template <class F> struct Signature;

template <class... A> struct Signature<void (*)(A...)> {
  static constexpr std::size_t count = sizeof...(A);

  template <std::size_t N, std::size_t I, class First, class... Rest> struct At {
    using type = typename At<N, I + 1, Rest...>::type;
  };
  template <std::size_t N, class First, class... Rest> struct At<N, N, First, Rest...> {
    using type = First;
  };
  template <std::size_t N> using argument = typename At<N, 0, A...>::type;
};

template <class... A> struct Signature<void (*)(A...) noexcept> : Signature<void (*)(A...)> {};

template <class P> using Pointee = std::remove_cv_t<std::remove_pointer_t<P>>;

template <class P, class T> inline constexpr bool points_to = std::is_pointer_v<P> && std::is_same_v<Pointee<P>, T>;

template <class P> inline constexpr bool writable = !std::is_const_v<std::remove_pointer_t<P>>;

template <class T> T scalar(std::int64_t bits) {
  if constexpr (std::is_floating_point_v<T>) {
    T value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
  } else {
    return static_cast<T>(bits);
  }
}

} // namespace host_call
