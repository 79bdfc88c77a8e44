// gemm_finish of 'op'
#include "gemm.h"

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
};

}  // namespace

extern "C" void k_op_gemm_finish_gemm_finish_09dfc108(
    [[maybe_unused]] const int32_t *__restrict acc,
    [[maybe_unused]] const int32_t *__restrict bias,
    [[maybe_unused]] const int32_t *__restrict requant,
    [[maybe_unused]] int8_t *__restrict out) {
    event0();
    aie::set_rounding(aie::rounding_mode::conv_even);
    aie::set_saturation(aie::saturation_mode::saturate);
    port::GemmFinish<K>::run(acc, bias, requant, out);
    event1();
}
