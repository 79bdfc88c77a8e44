// The cascade between neighbouring cores: 512 bit words, first in first out.
// Sources: aie_api cascade.hpp, Peano aiev2_streams.h and aie2p_streams.h (put_mcd, get_scd_*).
// The runtime holds the words: what is put goes to the output queue, what is got comes from the input queue.
#pragma once

#include "accum.hpp"

extern "C" {
void aie_host_cascade_put(const std::uint8_t* word, std::size_t bytes);
void aie_host_cascade_get(std::uint8_t* word, std::size_t bytes);
}

namespace aie_host {

inline constexpr std::size_t cascade_bytes = 64;

template <typename Word>
Word cascade_get(int enable) {
  require(enable == 1, "cascade read with enable 0 is not modelled");
  Word word;
  static_assert(Word::bits() == 512);
  aie_host_cascade_get(reinterpret_cast<std::uint8_t*>(word.data()), cascade_bytes);
  return word;
}

}  // namespace aie_host

template <typename Word>
  requires((aie::Vector<Word> || aie::Accum<Word>) && Word::bits() == 512)
void put_mcd(const Word& word, int enable = 1) {
  aie_host::require(enable == 1, "cascade write with enable 0 is not modelled");
  aie_host_cascade_put(reinterpret_cast<const std::uint8_t*>(word.data()), aie_host::cascade_bytes);
}

#define AIE_HOST_SCD(name, ...) \
  inline auto get_scd_##name(int enable = 1) { return aie_host::cascade_get<__VA_ARGS__>(enable); }
AIE_HOST_SCD(v16acc32, aie::accum<acc32, 16>)
AIE_HOST_SCD(v8acc64, aie::accum<acc64, 8>)
AIE_HOST_SCD(v16accfloat, aie::accum<accfloat, 16>)
AIE_HOST_SCD(v64int8, aie::vector<int8, 64>)
AIE_HOST_SCD(v64uint8, aie::vector<uint8, 64>)
AIE_HOST_SCD(v32int16, aie::vector<int16, 32>)
AIE_HOST_SCD(v32uint16, aie::vector<uint16, 32>)
AIE_HOST_SCD(v16int32, aie::vector<int32, 16>)
AIE_HOST_SCD(v16uint32, aie::vector<uint32, 16>)
AIE_HOST_SCD(v32bfloat16, aie::vector<bfloat16, 32>)
#undef AIE_HOST_SCD

// As in the API: the accessors without ADF exist for XDNA 2 only.
#define __AIE_API_HAS_CASCADE__ (__AIE_ARCH__ == 21)

#if __AIE_API_HAS_CASCADE__
namespace aie {
inline void cascade_out(const vector<int32, 16>& v) { put_mcd(v); }
inline void cascade_out(const accum<acc32, 16>& a) { put_mcd(a); }
inline vector<int32, 16> cascade_in_i32() { return get_scd_v16int32(); }
inline accum<acc32, 16> cascade_in_acc32() { return get_scd_v16acc32(); }
}  // namespace aie
#endif
