// gemm_rows of 'op'
#include "gemm.h"

namespace {

struct K {
    using X = int8_t;
    using W = int8_t;
    static constexpr int32_t X_ZERO = 1;
    static constexpr bool SPLITS = false;
    static constexpr int32_t W_ZEROS[] = {0};
    static constexpr int32_t CHUNK = 16;
    static constexpr int32_t BITS = 32;
    static constexpr int32_t CHANNELS = 16;
    static constexpr int32_t IN_WIDTH = 8;
    static constexpr int32_t IN_CHANNELS = 16;
};

}  // namespace

extern "C" void k_op_gemm_rows_gemm_rows_0364539a(
    [[maybe_unused]] const int8_t *__restrict in0,
    [[maybe_unused]] const int8_t *__restrict weights,
    [[maybe_unused]] int32_t *__restrict acc,
    [[maybe_unused]] int32_t row) {
    event0();
    aie::set_rounding(aie::rounding_mode::conv_even);
    aie::set_saturation(aie::saturation_mode::saturate);
    port::GemmRows<K>::run(in0, weights, acc, row);
    event1();
}
