// A whole tensor in, the same elements in another order out.
//
// The elements are counted in the order of the output by two sets of counters that carry without a branch: along the
// axes of the output, and along the axes of the input in the order in which the output wants them. Neither a division
// nor a table of addresses is needed.
//
// K: X, Y dtypes; Output O; finish; x_zero_point; elements; rank_in, size_in[], objects_in[] (objects that a step along
// the axis skips), channel_in, column_in (axes that are the channel and the place of the width, column -1 = none),
// width_in; the same for the output as rank_out, ...; object_elements (of the output), y_objects; axis: of the output
// along which multipliers differ, -1 = they do not.
#pragma once

#include "requantize.h"

namespace port {

template <int32_t RANK>
inline void advance(int32_t (&at)[RANK], const int32_t (&size)[RANK]) {
    int32_t carry = 1;
    PORT_UNROLL_FULL
    for (int32_t axis = RANK - 1; axis >= 0; --axis) {
        const int32_t next = at[axis] + carry;
        carry = next == size[axis] ? 1 : 0;
        at[axis] = next - carry * size[axis];
    }
}

template <int32_t RANK>
inline int32_t object_of(const int32_t (&at)[RANK], const int32_t (&objects)[RANK]) {
    int32_t number = 0;
    PORT_UNROLL_FULL
    for (int32_t axis = 0; axis < RANK; ++axis) {
        number += at[axis] * objects[axis];
    }
    return number;
}

inline int32_t element_of(int32_t channel, int32_t column, int32_t width) {
    return ((channel >> 3) * width + column) * 8 + (channel & 7);
}

// One element; where it is rounded, 16 times the same.
template <typename K>
inline typename K::Y moved(typename K::X element, const int32_t* __restrict requant, int32_t place) {
    if constexpr (K::finish == Finish::round && sizeof(typename K::X) <= 4) {
        const Values value = aie::broadcast<int32, LANES>(int32_t(element) - K::x_zero_point);
        return finish<typename K::O>(value, scale_uniform(requant + 2 * place)).get(0);
    } else {
        int64_t values[8];
        alignas(32) typename K::Y lanes[8];
        for (int32_t lane = 0; lane < 8; ++lane) {
            values[lane] = minus(element, K::x_zero_point);
        }
        leave_plain<K>(values, K::finish == Finish::round ? requant + 2 * place : requant, 0, 0, lanes);
        return lanes[0];
    }
}

// `from` and `to` give the address of an object by its number.
template <typename K, typename From, typename To>
inline void relayout_kernel(From from, const int32_t* __restrict requant, To to) {
    for (int32_t object = 0; object < K::y_objects; ++object) {
        typename K::Y* y = to(object);
        for (int32_t at = 0; at < K::object_elements; ++at) {
            y[at] = 0;
        }
    }
    int32_t in[K::rank_in] = {}, out[K::rank_out] = {};
    for (int32_t element = 0; element < K::elements; ++element) {
        const int32_t in_column = K::column_in < 0 ? 0 : in[K::column_in < 0 ? 0 : K::column_in];
        const int32_t out_column = K::column_out < 0 ? 0 : out[K::column_out < 0 ? 0 : K::column_out];
        const int32_t source = element_of(in[K::channel_in], in_column, K::width_in);
        const int32_t target = element_of(out[K::channel_out], out_column, K::width_out);
        const int32_t place = K::axis < 0 ? 0 : out[K::axis < 0 ? 0 : K::axis];
        to(object_of(out, K::objects_out))[target] =
            moved<K>(from(object_of(in, K::objects_in))[source], requant, place);
        advance(in, K::size_in);
        advance(out, K::size_out);
    }
}

}  // namespace port
