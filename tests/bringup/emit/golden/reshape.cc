// reshape of 'op'
#include "requantize.h"

namespace {

using port::Along, port::Finish;

struct K {
    using X = int8_t;
    using Y = int8_t;
    using O = port::Output<int8_t, 0, -128, 127, false>;
    static constexpr auto finish = Finish::clamp;
    static constexpr auto along = Along::nowhere;
    static constexpr bool wraps = false;
    static constexpr int32_t channels = 16;
    static constexpr int32_t blocks = 2;
    static constexpr int32_t width = 1;
    static constexpr int32_t x_zero_point = 0;
    static constexpr bool plain = false;
    static constexpr int32_t minimums = 0;
    static constexpr int32_t maximums = 0;
};

}  // namespace

extern "C" void k_op_reshape_reshape_73740f7d(
    [[maybe_unused]] const int8_t *__restrict in0,
    [[maybe_unused]] int8_t *__restrict out) {
    event0();
    aie::set_rounding(aie::rounding_mode::conv_even);
    aie::set_saturation(aie::saturation_mode::saturate);
    port::requantize_kernel<K>(in0, nullptr, out);
    event1();
}
