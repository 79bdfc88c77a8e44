// mul of 'op'
#include "mul.h"

namespace {

using port::Along, port::Finish;

struct K {
    using Y = int8_t;
    using O = port::Output<int8_t, 3, -128, 127, false>;
    static constexpr auto finish = Finish::round;
    static constexpr auto along = Along::nowhere;
    static constexpr bool wraps = false;
    static constexpr int32_t channels = 16;
    static constexpr int32_t blocks = 2;
    static constexpr int32_t width = 8;
    static constexpr int32_t constant = 1;
    using A = int8_t;
    static constexpr int32_t a_zero_point = 1;
    static constexpr int32_t a_channels = 16;
    static constexpr int32_t a_width = 8;
    using B = int8_t;
    static constexpr int32_t b_zero_point = 0;
    static constexpr int32_t b_channels = 16;
    static constexpr int32_t b_width = 1;
    static constexpr bool plain = false;
};

}  // namespace

extern "C" void k_op_mul_mul_9a01799f(
    [[maybe_unused]] const int8_t *__restrict in0,
    [[maybe_unused]] const int8_t *__restrict constant,
    [[maybe_unused]] const int32_t *__restrict requant,
    [[maybe_unused]] int8_t *__restrict out,
    [[maybe_unused]] int32_t row) {
    event0();
    aie::set_rounding(aie::rounding_mode::conv_even);
    aie::set_saturation(aie::saturation_mode::saturate);
    port::mul_kernel<K>(in0, constant, requant, out);
    event1();
}
