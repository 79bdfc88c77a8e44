// copy of 'op'
#include "copy.h"

namespace {

using port::Along, port::Finish;

struct K {
    using X = int8_t;
    static constexpr int32_t elements = 128;
    static constexpr bool plain = false;
};

}  // namespace

extern "C" void k_op_copy_copy_de108651(
    [[maybe_unused]] const int8_t *__restrict in0,
    [[maybe_unused]] int8_t *__restrict out) {
    event0();
    aie::set_rounding(aie::rounding_mode::conv_even);
    aie::set_saturation(aie::saturation_mode::saturate);
    port::copy_kernel<K>(in0, out);
    event1();
}
