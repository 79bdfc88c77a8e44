// max_pool of 'op'
#include "max_pool.h"

namespace {

using port::Along, port::Finish;

struct K {
    using X = int8_t;
    static constexpr int32_t kernel_height = 3;
    static constexpr int32_t kernel_width = 3;
    static constexpr int32_t step = 1;
    static constexpr int32_t down = 1;
    static constexpr int32_t right = 1;
    static constexpr int32_t left = 1;
    static constexpr int32_t in_width = 8;
    using Y = int8_t;
    using O = port::Output<int8_t, 0, -128, 127, false>;
    static constexpr auto finish = Finish::clamp;
    static constexpr auto along = Along::nowhere;
    static constexpr bool wraps = false;
    static constexpr int32_t channels = 16;
    static constexpr int32_t blocks = 2;
    static constexpr int32_t width = 8;
    static constexpr int32_t x_zero_point = 0;
    static constexpr bool plain = false;
};

}  // namespace

extern "C" void k_op_max_pool_max_pool_91886645(
    [[maybe_unused]] const int8_t *__restrict row0,
    [[maybe_unused]] const int8_t *__restrict row1,
    [[maybe_unused]] const int8_t *__restrict row2,
    [[maybe_unused]] int8_t *__restrict out,
    [[maybe_unused]] int32_t pad_top,
    [[maybe_unused]] int32_t pad_bottom) {
    event0();
    aie::set_rounding(aie::rounding_mode::conv_even);
    aie::set_saturation(aie::saturation_mode::saturate);
    const int8_t *const rows[] = {row0, row1, row2};
    port::max_pool_kernel<K>(rows, nullptr, out, pad_top, pad_bottom);
    event1();
}
