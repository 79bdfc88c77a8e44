// aie::accum: integer accumulators wrap modulo 2**32 or 2**64.
// Sources: aie_api accum.hpp, detail/aie2/accum.hpp (native bits), aie_doc.hpp ("Supported accumulator types").
#pragma once

#include "vector.hpp"

namespace aie {

template <AccumElemBaseType Tag, unsigned N>
class alignas(32) [[gnu::may_alias]] accum {
  using traits = detail::accum_traits<Tag>;
  static_assert(N >= traits::min_lanes && N <= traits::max_lanes && (N & (N - 1)) == 0,
                "aie::accum: number of lanes is not documented for this accumulator type");

 public:
  using value_type = Tag;
  using lane_type = typename traits::storage;
  using storage_t = accum;

  static constexpr unsigned size() { return N; }
  static constexpr unsigned accum_bits() { return traits::bits; }
  static constexpr unsigned value_bits() { return traits::bits; }
  static constexpr unsigned memory_bits() { return traits::bits; }
  static constexpr unsigned bits() { return N * traits::bits; }
  static constexpr bool is_floating_point() { return traits::is_float; }
  static constexpr bool is_complex() { return false; }
  static constexpr bool is_real() { return true; }

  /// Contents are undefined.
  accum() { std::memset(static_cast<void*>(data_), aie_host::poison, sizeof data_); }

  template <typename Other>
    requires(!std::is_same_v<Other, Tag> && std::is_same_v<typename accum<Other, N>::lane_type, lane_type>)
  accum(const accum<Other, N>& other) {
    std::memcpy(static_cast<void*>(data_), other.data(), sizeof data_);
  }

  template <typename T>
  explicit accum(const vector<T, N>& v, int shift = 0) {
    from_vector(v, shift);
  }

  accum to_native() const { return *this; }

  template <typename T>
  operator vector<T, N>() const
    requires(traits::is_float && !std::is_integral_v<T>)
  {
    return to_vector<T>();
  }

  template <typename T>
  void from_vector(const vector<T, N>& v, int shift = 0) {
    if constexpr (std::is_integral_v<T>) {
      from_vector_sign(v, detail::is_signed_v<T>, shift);
    } else {
      static_assert(traits::is_float, "a floating point vector needs accfloat");
      for (unsigned i = 0; i < N; ++i) data_[i] = static_cast<float>(v.data()[i]);
    }
  }

  template <typename T>
  void from_vector_sign(const vector<T, N>& v, bool v_sign, int shift = 0) {
    static_assert(std::is_integral_v<T> && !traits::is_float, "integer vectors need an integer accumulator");
    const auto mode = detail::current_modes().saturation;
    for (unsigned i = 0; i < N; ++i) data_[i] = detail::ups<lane_type>(v.lane_value(i, v_sign), shift, mode);
  }

  /// Shift, round, saturate (integers); floats ignore the shift.
  template <typename T>
  vector<T, N> to_vector(int shift = 0) const {
    if constexpr (traits::is_float) {
      static_assert(!std::is_integral_v<T>, "accfloat converts to float and bfloat16 vectors");
      vector<T, N> out;
      const auto mode = detail::current_modes().rounding;
      for (unsigned i = 0; i < N; ++i) {
        if constexpr (std::is_same_v<T, bfloat16>)
          out.data()[i] = detail::round_bf16(data_[i], mode);
        else
          out.data()[i] = data_[i];
      }
      return out;
    } else {
      return to_vector_sign<T>(detail::is_signed_v<T>, shift);
    }
  }

  auto to_vector() const
    requires(traits::is_float)
  {
    return to_vector<float>();
  }

  template <typename T>
  vector<T, N> to_vector_sign(bool v_sign, int shift = 0) const {
    static_assert(std::is_integral_v<T> && !traits::is_float, "an integer accumulator converts to integer vectors");
    vector<T, N> out;
    const auto modes = detail::current_modes();
    for (unsigned i = 0; i < N; ++i) out.data()[i] = detail::srs<T>(data_[i], shift, v_sign, modes);
    return out;
  }

  template <unsigned M>
  accum<Tag, M> extract(unsigned index) const {
    static_assert(M <= N && N % M == 0);
    aie_host::require(index < N / M, "extract: subaccumulator index out of range");
    accum<Tag, M> out;
    std::memcpy(static_cast<void*>(out.data()), data_ + index * M, sizeof(lane_type) * M);
    return out;
  }

  template <unsigned M>
  accum& insert(unsigned index, const accum<Tag, M>& part) {
    static_assert(M <= N && N % M == 0);
    aie_host::require(index < N / M, "insert: subaccumulator index out of range");
    std::memcpy(static_cast<void*>(data_ + index * M), part.data(), sizeof(lane_type) * M);
    return *this;
  }

  template <unsigned M>
  accum<Tag, M> grow() const {
    accum<Tag, M> out;
    out.insert(0, *this);
    return out;
  }

  template <unsigned M>
  accum<Tag, M> grow_replicate() const {
    accum<Tag, M> out;
    for (unsigned i = 0; i < M / N; ++i) out.insert(i, *this);
    return out;
  }

  template <unsigned M>
  accum<Tag, M> grow_extract(unsigned index) const {
    if constexpr (M > N)
      return grow<M>();
    else
      return extract<M>(index);
  }

  template <unsigned M>
  auto split() const {
    return [this]<std::size_t... I>(std::index_sequence<I...>) {
      return std::make_tuple(extract<M>(I)...);
    }(std::make_index_sequence<N / M>{});
  }

  template <AccumElemBaseType D>
  auto cast_to() const {
    accum<D, N * sizeof(lane_type) / sizeof(typename detail::accum_traits<D>::storage)> out;
    std::memcpy(static_cast<void*>(out.data()), data_, sizeof data_);
    return out;
  }

  /// Host only: the lanes, for the operations of this library.
  lane_type* data() { return data_; }
  const lane_type* data() const { return data_; }

 private:
  lane_type data_[N];
};

template <typename T, Accum Acc>
auto to_vector(const Acc& acc, int shift = 0) {
  return acc.template to_vector<T>(shift);
}

template <AccumElemBaseType Tag, typename T, unsigned N>
accum<Tag, N> from_vector(const vector<T, N>& v, int shift = 0) {
  return accum<Tag, N>(v, shift);
}

}  // namespace aie
