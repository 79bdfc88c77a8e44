// aie::mask. Source: aie_api mask.hpp, aie_doc.hpp ("Mask Initialization").
#pragma once

#include "types.hpp"

namespace aie {

template <unsigned N>
class mask {
 public:
  static constexpr unsigned size() { return N; }

  mask() = default;

  static mask from_uint32(std::uint32_t low) { return from_words<std::uint32_t>({low}); }
  template <typename... Words>
    requires(sizeof...(Words) > 0 && (std::convertible_to<Words, std::uint32_t> && ...))
  static mask from_uint32(std::uint32_t low, Words... words) {
    return from_words<std::uint32_t>({low, static_cast<std::uint32_t>(words)...});
  }
  template <typename... Words>
    requires(std::convertible_to<Words, std::uint64_t> && ...)
  static mask from_uint64(std::uint64_t low, Words... words) {
    return from_words<std::uint64_t>({low, static_cast<std::uint64_t>(words)...});
  }

  bool test(unsigned index) const {
    aie_host::require(index < N, "mask index out of range");
    return lanes_[index];
  }
  void set(unsigned index) {
    aie_host::require(index < N, "mask index out of range");
    lanes_[index] = true;
  }
  void clear(unsigned index) {
    aie_host::require(index < N, "mask index out of range");
    lanes_[index] = false;
  }
  unsigned count() const {
    unsigned total = 0;
    for (bool lane : lanes_) total += lane;
    return total;
  }
  bool empty() const { return count() == 0; }
  bool full() const { return count() == N; }
  std::uint32_t to_uint32(unsigned word = 0) const {
    std::uint32_t out = 0;
    for (unsigned i = 0; i < 32 && word * 32 + i < N; ++i) out |= std::uint32_t{lanes_[word * 32 + i]} << i;
    return out;
  }

  template <unsigned M>
  mask<M> extract(unsigned index) const {
    aie_host::require(index < N / M, "extract: submask index out of range");
    mask<M> out;
    for (unsigned i = 0; i < M; ++i)
      if (lanes_[index * M + i]) out.set(i);
    return out;
  }

  mask operator&(const mask& other) const { return zip(other, [](bool a, bool b) { return a && b; }); }
  mask operator|(const mask& other) const { return zip(other, [](bool a, bool b) { return a || b; }); }
  mask operator^(const mask& other) const { return zip(other, [](bool a, bool b) { return a != b; }); }
  mask operator~() const { return zip(*this, [](bool a, bool) { return !a; }); }
  mask& operator&=(const mask& other) { return *this = *this & other; }
  mask& operator|=(const mask& other) { return *this = *this | other; }
  mask& operator^=(const mask& other) { return *this = *this ^ other; }
  bool operator==(const mask&) const = default;

 private:
  template <typename Word>
  static mask from_words(std::initializer_list<Word> words) {
    mask out;
    unsigned base = 0;
    for (Word word : words) {
      for (unsigned i = 0; i < sizeof(Word) * 8 && base + i < N; ++i) out.lanes_[base + i] = (word >> i) & 1u;
      base += sizeof(Word) * 8;
    }
    return out;
  }
  template <typename F>
  mask zip(const mask& other, F f) const {
    mask out;
    for (unsigned i = 0; i < N; ++i) out.lanes_[i] = f(lanes_[i], other.lanes_[i]);
    return out;
  }

  std::array<bool, N> lanes_{};
};

}  // namespace aie
