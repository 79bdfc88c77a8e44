// conv of 'op'
#include "conv_mmul.h"

namespace {

struct K {
    using Out = port::Output<int8_t, 3, -128, 127, false>;
    static constexpr int32_t BITS = 32;
    static constexpr int32_t CHANNELS = 16;
    static constexpr bool HAS_BIAS = true;
    static constexpr bool UNIFORM = true;
    static constexpr bool CASCADE_IN = false;
    static constexpr bool CASCADE_OUT = false;
    static constexpr bool WRAPS = false;
    static constexpr int32_t PROMOTIONS[] = {0};
    static constexpr int32_t IN_WIDTH = 8;
    static constexpr int32_t OUT_WIDTH = 8;
    static constexpr int32_t KERNEL_HEIGHT = 3;
    static constexpr int32_t KERNEL_WIDTH = 3;
    static constexpr int32_t STRIDE = 1;
    static constexpr int32_t DOWN = 1;
    static constexpr int32_t RIGHT = 1;
    static constexpr int32_t LEFT = 1;
    static constexpr int32_t X_ZERO = 1;
    static constexpr int32_t CHUNK_BLOCKS = 2;
    using X = int8_t;
    using W = int8_t;
    static constexpr int32_t R = 8;
    static constexpr int32_t IN_BLOCK = 0;
    static constexpr int32_t IN_BLOCKS = 2;
};

}  // namespace

extern "C" void k_op_conv_conv_4d34a431(
    [[maybe_unused]] const int8_t *__restrict row0,
    [[maybe_unused]] const int8_t *__restrict row1,
    [[maybe_unused]] const int8_t *__restrict row2,
    [[maybe_unused]] const int8_t *__restrict weights,
    [[maybe_unused]] const int8_t *__restrict bias,
    [[maybe_unused]] const int32_t *__restrict requant,
    [[maybe_unused]] int8_t *__restrict out,
    [[maybe_unused]] int32_t pad_top,
    [[maybe_unused]] int32_t pad_bottom,
    [[maybe_unused]] int32_t out_offset) {
    event0();
    aie::set_rounding(aie::rounding_mode::conv_even);
    aie::set_saturation(aie::saturation_mode::saturate);
    const int8_t *const all_rows[] = {row0, row1, row2};
    port::ConvMmul<K>::run(all_rows, weights, bias, requant, out, pad_top, pad_bottom, out_offset);
    event1();
}
