// gemm of 'op'
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
    using X = int8_t;
    using W = int8_t;
    static constexpr int32_t X_ZERO = 1;
    static constexpr bool SPLITS = false;
    static constexpr int32_t W_ZEROS[] = {0};
    static constexpr int32_t CHUNK = 16;
    static constexpr int32_t IN_FIRST = 0;
    static constexpr int32_t IN_COUNT = 16;
};

}  // namespace

extern "C" void k_op_gemm_gemm_0d922164(
    [[maybe_unused]] const int8_t *__restrict in0,
    [[maybe_unused]] const int8_t *__restrict weights,
    [[maybe_unused]] const int32_t *__restrict bias,
    [[maybe_unused]] const int32_t *__restrict requant,
    [[maybe_unused]] int8_t *__restrict out,
    [[maybe_unused]] int32_t out_offset) {
    event0();
    aie::set_rounding(aie::rounding_mode::conv_even);
    aie::set_saturation(aie::saturation_mode::saturate);
    port::Gemm<K>::run(in0, weights, bias, requant, out, out_offset);
    event1();
}
