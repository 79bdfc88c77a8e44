// matmul of 'op'
#include "matmul.h"

namespace {

struct PlaceA {
    static constexpr int32_t object[] = {0};
    static constexpr int32_t element[] = {0};
    static constexpr int32_t ROW_OBJECT = 0;
    static constexpr int32_t ROW_ELEMENT = 0;
    static constexpr int32_t COLUMN_OBJECT = 0;
    static constexpr int32_t COLUMN_ELEMENT = 1;
};

struct PlaceB {
    static constexpr int32_t object[] = {0};
    static constexpr int32_t element[] = {0};
    static constexpr int32_t ROW_OBJECT = 0;
    static constexpr int32_t ROW_ELEMENT = 16;
    static constexpr int32_t COLUMN_OBJECT = 0;
    static constexpr int32_t COLUMN_ELEMENT = 1;
};

struct PlaceY {
    static constexpr int32_t object[] = {0};
    static constexpr int32_t element[] = {0};
    static constexpr int32_t ROW_OBJECT = 0;
    static constexpr int32_t ROW_ELEMENT = 0;
    static constexpr int32_t COLUMN_OBJECT = 0;
    static constexpr int32_t COLUMN_ELEMENT = 1;
};

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
    using A = int8_t;
    using B = int8_t;
    static constexpr int32_t ROWS = 1;
    static constexpr int32_t INNER = 16;
    static constexpr int32_t BATCHES = 1;
    static constexpr bool A_SPLITS = false;
    static constexpr bool B_SPLITS = false;
    static constexpr int32_t A_ZEROS[] = {1};
    static constexpr int32_t B_ZEROS[] = {0};
    static constexpr int32_t B_PADDED = 16;
    static constexpr int32_t Y_PADDED = 16;
    static constexpr int32_t Y_CLEARED = 0;
    static constexpr int32_t Y_POINTERS = 1;
    using AtA = PlaceA;
    using AtB = PlaceB;
    using AtY = PlaceY;
};

}  // namespace

extern "C" void k_op_matmul_matmul_05b07a65(
    [[maybe_unused]] const int8_t *__restrict in0,
    [[maybe_unused]] const int8_t *__restrict constant,
    [[maybe_unused]] const int32_t *__restrict bias,
    [[maybe_unused]] const int32_t *__restrict requant,
    [[maybe_unused]] int8_t *__restrict out) {
    event0();
    aie::set_rounding(aie::rounding_mode::conv_even);
    aie::set_saturation(aie::saturation_mode::saturate);
    const int8_t *const all_a[] = {in0};
    const int8_t *const all_b[] = {constant};
    int8_t *const all_y[] = {out};
    port::Matmul<K>::run(all_a, all_b, bias, requant, all_y);
    event1();
}
