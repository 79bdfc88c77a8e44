// add of 'op'
#include "add.h"

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
    static constexpr int32_t constant = -1;
    using A = int8_t;
    static constexpr int32_t a_zero_point = 1;
    static constexpr int32_t a_channels = 16;
    static constexpr int32_t a_width = 8;
    using B = int8_t;
    static constexpr int32_t b_zero_point = 2;
    static constexpr int32_t b_channels = 16;
    static constexpr int32_t b_width = 8;
    static constexpr bool plain = false;
    static constexpr bool wide = false;
    static constexpr int32_t a_room = 23;
    static constexpr int32_t b_room = 23;
    static constexpr int32_t a_factor = 1;
    static constexpr int32_t b_factor = 1;
};

}  // namespace

extern "C" void k_op_add_add_7bb21995(
    [[maybe_unused]] const int8_t *__restrict in0,
    [[maybe_unused]] const int8_t *__restrict in1,
    [[maybe_unused]] const int32_t *__restrict requant,
    [[maybe_unused]] int8_t *__restrict out,
    [[maybe_unused]] int32_t row) {
    event0();
    aie::set_rounding(aie::rounding_mode::conv_even);
    aie::set_saturation(aie::saturation_mode::saturate);
    port::add_kernel<K>(in0, in1, requant, out);
    event1();
}
