// concat of 'op'
#include "concat.h"

namespace {

using port::Along, port::Finish;

struct K0 {
    using X = int8_t;
    using Y = int8_t;
    using O = port::Output<int8_t, 3, -128, 127, false>;
    static constexpr auto finish = Finish::round;
    static constexpr auto along = Along::nowhere;
    static constexpr bool wraps = false;
    static constexpr int32_t channels = 8;
    static constexpr int32_t blocks = 1;
    static constexpr int32_t width = 8;
    static constexpr int32_t y_width = 8;
    static constexpr int32_t y_channel = 0;
    static constexpr int32_t y_column = 0;
    static constexpr int32_t x_zero_point = 0;
    static constexpr int32_t factor = 1;
    static constexpr bool plain = false;
};

struct K1 {
    using X = int8_t;
    using Y = int8_t;
    using O = port::Output<int8_t, 3, -128, 127, false>;
    static constexpr auto finish = Finish::round;
    static constexpr auto along = Along::nowhere;
    static constexpr bool wraps = false;
    static constexpr int32_t channels = 8;
    static constexpr int32_t blocks = 1;
    static constexpr int32_t width = 8;
    static constexpr int32_t y_width = 8;
    static constexpr int32_t y_channel = 8;
    static constexpr int32_t y_column = 0;
    static constexpr int32_t x_zero_point = 0;
    static constexpr int32_t factor = 1;
    static constexpr bool plain = false;
};

}  // namespace

extern "C" void k_op_concat_concat_a200d550(
    [[maybe_unused]] const int8_t *__restrict in0,
    [[maybe_unused]] const int8_t *__restrict in1,
    [[maybe_unused]] const int32_t *__restrict requant,
    [[maybe_unused]] int8_t *__restrict out,
    [[maybe_unused]] int32_t row) {
    event0();
    aie::set_rounding(aie::rounding_mode::conv_even);
    aie::set_saturation(aie::saturation_mode::saturate);
    port::concat_operand<K0>(in0, requant + 0, out);
    port::concat_operand<K1>(in1, requant + 2, out);
    port::clear_padding<16, 2, 8>(out);
    event1();
}
