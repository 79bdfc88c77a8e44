// lut of 'op'
#include "lut.h"

namespace {

using port::Along, port::Finish;

struct K {
    using X = int8_t;
    using Y = int8_t;
    static constexpr int32_t blocks = 2;
    static constexpr int32_t width = 8;
    static constexpr int32_t channels = 16;
    static constexpr int32_t lowest = -128;
};

}  // namespace

extern "C" void k_op_lut_lut_144db8e1(
    [[maybe_unused]] const int8_t *__restrict in0,
    [[maybe_unused]] const int8_t *__restrict lut,
    [[maybe_unused]] int8_t *__restrict out) {
    event0();
    aie::set_rounding(aie::rounding_mode::conv_even);
    aie::set_saturation(aie::saturation_mode::saturate);
    port::lut_kernel<K>(in0, lut, out);
    event1();
}
