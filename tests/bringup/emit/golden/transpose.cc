// transpose of 'op'
#include "relayout.h"

namespace {

using port::Along, port::Finish;

struct K {
    using X = int8_t;
    using Y = int8_t;
    using O = port::Output<int8_t, 0, -128, 127, false>;
    static constexpr auto finish = Finish::clamp;
    static constexpr auto along = Along::nowhere;
    static constexpr bool wraps = false;
    static constexpr int32_t x_zero_point = 0;
    static constexpr int32_t elements = 16;
    static constexpr int32_t y_objects = 16;
    static constexpr int32_t object_elements = 8;
    static constexpr int32_t axis = -1;
    static constexpr int32_t rank_in = 2;
    static constexpr int32_t size_in[] = {16, 1};
    static constexpr int32_t objects_in[] = {0, 1};
    static constexpr int32_t channel_in = 0;
    static constexpr int32_t column_in = -1;
    static constexpr int32_t width_in = 1;
    static constexpr int32_t rank_out = 2;
    static constexpr int32_t size_out[] = {16, 1};
    static constexpr int32_t objects_out[] = {1, 0};
    static constexpr int32_t channel_out = 1;
    static constexpr int32_t column_out = -1;
    static constexpr int32_t width_out = 1;
};

}  // namespace

extern "C" void k_op_transpose_transpose_3ebceb21(
    [[maybe_unused]] const int8_t *__restrict in0,
    [[maybe_unused]] int8_t *__restrict out) {
    event0();
    aie::set_rounding(aie::rounding_mode::conv_even);
    aie::set_saturation(aie::saturation_mode::saturate);
    const auto from = [&](int32_t object) { return in0 + object * 16; };
    const auto to = [&](int32_t object) { return out + object * 8; };
    port::relayout_kernel<K>(from, nullptr, to);
    event1();
}
