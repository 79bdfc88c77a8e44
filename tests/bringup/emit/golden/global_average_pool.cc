// global_average_pool of 'op'
#include "global_average_pool.h"

namespace {

using port::Along, port::Finish;

struct K {
    using X = int8_t;
    using Acc = int32_t;
    static constexpr int32_t blocks = 2;
    static constexpr int32_t width = 8;
    static constexpr int32_t channels = 16;
    static constexpr int32_t x_zero_point = 1;
    static constexpr bool narrow = true;
    static constexpr bool plain = false;
};

}  // namespace

extern "C" void k_op_global_average_pool_global_average_pool_2f722746(
    [[maybe_unused]] const int8_t *__restrict in0,
    [[maybe_unused]] int32_t *__restrict acc,
    [[maybe_unused]] int32_t row) {
    event0();
    aie::set_rounding(aie::rounding_mode::conv_even);
    aie::set_saturation(aie::saturation_mode::saturate);
    port::global_sum_kernel<K>(in0, acc, row);
    event1();
}
