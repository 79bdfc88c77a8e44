// The dense real shapes M x K x N that the API documents, by architecture and operand width.
// Source: aie_api detail/mmul.hpp, "Matrix multiplication modes for real types" (4 bit and bfp16 columns left out).
#pragma once

#include "types.hpp"

namespace aie::detail {

struct mmul_shape {
  unsigned m, k, n;
};

/// Shapes for operands of `a` and `b` bits; `is_float` separates bfloat16 from int16 and float from int32.
template <std::size_t Count>
constexpr bool listed(const mmul_shape (&shapes)[Count], mmul_shape s) {
  for (const mmul_shape& row : shapes)
    if (row.m == s.m && row.k == s.k && row.n == s.n) return true;
  return false;
}

// A function for each list, not an inline variable: variables would be shared by libraries of two architectures.
#define AIE_HOST_SHAPES(name, ...)           \
  constexpr bool name(mmul_shape s) {        \
    constexpr mmul_shape rows[] = __VA_ARGS__; \
    return listed(rows, s);                  \
  }
#if __AIE_ARCH__ == 20
AIE_HOST_SHAPES(shapes_8_8, {{4, 8, 4}, {4, 16, 4}, {8, 8, 4},  {2, 8, 8}, {4, 8, 8},
                                            {8, 8, 8}, {1, 16, 8}, {2, 16, 8}, {4, 16, 8}})
AIE_HOST_SHAPES(shapes_16_8, {{4, 4, 4}, {8, 4, 4}, {4, 8, 4}, {4, 4, 8}, {8, 4, 8}, {2, 8, 8}})
AIE_HOST_SHAPES(shapes_8_16, {{4, 4, 8}, {4, 4, 4}})
AIE_HOST_SHAPES(shapes_16_16, {{4, 4, 4}, {2, 4, 8}, {4, 4, 8}, {4, 2, 8}, {8, 2, 8}, {8, 1, 8}})
AIE_HOST_SHAPES(shapes_32_16, {{2, 4, 8}, {4, 4, 8}, {4, 4, 4}, {4, 2, 4}, {4, 1, 8}})
AIE_HOST_SHAPES(shapes_16_32, {{2, 4, 8}, {4, 4, 4}})
AIE_HOST_SHAPES(shapes_32_32, {{4, 2, 4}, {4, 4, 4}, {8, 2, 4}, {4, 1, 8}, {8, 1, 8}})
AIE_HOST_SHAPES(shapes_bf16, {{4, 8, 4}, {8, 8, 4}, {4, 16, 8}, {8, 8, 8}})
AIE_HOST_SHAPES(shapes_float, {{4, 8, 4}, {4, 1, 4}, {4, 1, 8}})
#else
AIE_HOST_SHAPES(shapes_8_8, {{4, 8, 8}, {8, 8, 8}})
AIE_HOST_SHAPES(shapes_16_8, {{4, 4, 8}, {8, 4, 8}, {4, 8, 8}, {2, 8, 8}})
AIE_HOST_SHAPES(shapes_8_16, {{8, 2, 8}, {4, 4, 8}})
AIE_HOST_SHAPES(shapes_16_16, {{4, 2, 8}, {8, 2, 8}, {2, 4, 8}, {4, 4, 8}, {8, 1, 8}})
AIE_HOST_SHAPES(shapes_32_16, {{4, 2, 8}, {2, 4, 8}, {4, 4, 8}, {4, 1, 8}})
AIE_HOST_SHAPES(shapes_16_32, {{4, 4, 8}})
AIE_HOST_SHAPES(shapes_32_32, {{4, 2, 8}, {4, 4, 4}, {4, 4, 8}, {8, 2, 8}, {4, 1, 8}})
AIE_HOST_SHAPES(shapes_bf16, {{8, 8, 4}, {4, 8, 8}, {4, 8, 4}, {8, 8, 8}, {8, 1, 8}})
AIE_HOST_SHAPES(shapes_float, {{4, 8, 4}})
#endif
#undef AIE_HOST_SHAPES

template <typename A, typename B>
constexpr bool is_mmul_shape(unsigned m, unsigned k, unsigned n) {
  const mmul_shape s{m, k, n};
  if constexpr (std::is_same_v<A, bfloat16> && std::is_same_v<B, bfloat16>) return shapes_bf16(s);
  else if constexpr (std::is_same_v<A, float> && std::is_same_v<B, float>) return shapes_float(s);
  else if constexpr (!std::is_integral_v<A> || !std::is_integral_v<B>) return false;
  else if constexpr (sizeof(A) == 1 && sizeof(B) == 1) return shapes_8_8(s);
  else if constexpr (sizeof(A) == 2 && sizeof(B) == 1) return shapes_16_8(s);
  else if constexpr (sizeof(A) == 1 && sizeof(B) == 2) return shapes_8_16(s);
  else if constexpr (sizeof(A) == 2 && sizeof(B) == 2) return shapes_16_16(s);
  else if constexpr (sizeof(A) == 4 && sizeof(B) == 2) return shapes_32_16(s);
  else if constexpr (sizeof(A) == 2 && sizeof(B) == 4) return shapes_16_32(s);
  else if constexpr (sizeof(A) == 4 && sizeof(B) == 4) return shapes_32_32(s);
  else return false;
}

}  // namespace aie::detail
