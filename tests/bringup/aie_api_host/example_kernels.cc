// Kernels of our own in the style of the public ones: names, hints, casts and includes as there.
#define NOCPP
#include <stdint.h>
#include <stdlib.h>

#include "../aie_arch.h"
#include "../aie_kernel_utils.h"
#include <aie_api/aie.hpp>

#if AIE_TUNED_AIE2P
constexpr unsigned R = 8;
#else
constexpr unsigned R = 4;
#endif
using MMUL = aie::mmul<R, 8, 8, int8, int8>;

// C (blocks of R x 8) = A (R x 8) B (8 x 8), all stored block by block.
template <typename T, bool requantize>
static void product(const int8 *restrict a, const int8 *restrict b, T *restrict c, int32_t m, int32_t k, int32_t n,
                    int shift) {
  event0();
  ::aie::set_saturation(aie::saturation_mode::saturate);
  ::aie::set_rounding(aie::rounding_mode::conv_even);
  for (int32_t i = 0; i < m; i++)
    for (int32_t j = 0; j < n; j++)
      chess_prepare_for_pipelining chess_loop_range(2, ) {
        MMUL acc = aie::zeros<acc32, MMUL::size_C>();
        AIE_PREPARE_FOR_PIPELINING
        AIE_LOOP_RANGE(1, 64)
        for (int32_t l = 0; l < k; l++) {
          aie::vector<int8, MMUL::size_A> in_a = aie::load_v<MMUL::size_A>(a + (i * k + l) * MMUL::size_A);
          aie::vector<int8, MMUL::size_B> in_b = aie::load_v<MMUL::size_B>(b + (l * n + j) * MMUL::size_B);
          acc.mac(in_a, in_b);
        }
        aie::store_v(c + (i * n + j) * MMUL::size_C, acc.template to_vector<T>(requantize ? shift : 0));
      }
  event1();
}

extern "C" {

void passthrough(uint8_t *in, uint8_t *out, int32_t count) {
  v64uint8 *restrict from = (v64uint8 *)in;
  v64uint8 *restrict to = (v64uint8 *)out;
  AIE_LOOP_MIN_ITERATION_COUNT(1)
  for (int32_t i = 0; i < count; i += 64) *to++ = *from++;
}

void matmul_i8_i8(int8_t *a, int8_t *b, int8_t *c, int32_t m, int32_t k, int32_t n, int32_t shift) {
  product<int8, true>(a, b, c, m, k, n, shift);
}

// Takes the 32 bit results for row-major, which they are not.
void matmul_i8_i32(int8_t *a, int8_t *b, int32_t *c, int32_t m, int32_t k, int32_t n, int32_t shift) {
  product<int32, false>(a, b, c, m, k, n, shift);
}

int32_t reduce_add(int32_t *in, int32_t count) {
  v16int32 total = broadcast_to_v16int32((int32_t)0);
  for (int32_t i = 0; i < count; i += 16) total = add(total, *(v16int32 *)(in + i));
  v16int32 half = add(total, shift_bytes(total, total, 32U));
  v16int32 quarter = add(half, shift_bytes(half, half, 16U));
  v16int32 pair = add(quarter, shift_bytes(quarter, quarter, 8U));
  return extract_elem(add(pair, shift_bytes(pair, pair, 4U)), 0U);
}

void scale(int16_t *restrict in, int16_t *restrict out, int32_t factor, int32_t count) {
  int16_t fac = factor;
  auto from = aie::begin_restrict_vector<32>(in);
  auto to = aie::begin_restrict_vector<32>(out);
  for (int32_t i = 0; i < count / 32; i++) {
    aie::accum<acc32, 32> wide = aie::mul(*from++, fac);
    *to++ = wide.template to_vector<int16_t>(0);
  }
}

void relu_bf16(bfloat16 *restrict in, bfloat16 *restrict out, int32_t count) {
  v32bfloat16 zeroes = broadcast_zero_bfloat16();
  v32bfloat16 *restrict from = (v32bfloat16 *)in;
  v32bfloat16 *restrict to = (v32bfloat16 *)out;
  for (int32_t i = 0; i < count; i += 32) *to++ = max(*from++, zeroes);
}

void threshold(uint8_t *in, uint8_t *out, int32_t limit, int32_t high) {
  ::aie::vector<uint8_t, 64> constants;
  constants[0] = 0;
  constants[1] = limit;
  constants[2] = high;
  ::aie::vector<uint8_t, 64> data = ::aie::load_v(in);
  ::aie::store_v(out, ::aie::select(constants[0], constants[2], ::aie::lt(constants[1], data)));
}
}
