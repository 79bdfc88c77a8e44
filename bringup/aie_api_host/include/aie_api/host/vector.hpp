// aie::vector and element references.
// Sources: aie_api vector.hpp, vector_elem_ref.hpp, aie_doc.hpp ("Supported vector types and native sizes").
#pragma once

#include "srs.hpp"

namespace aie {

template <ElemBaseType T, unsigned N = native_vector_length_v<T>>
class vector;
template <AccumElemBaseType Tag, unsigned N>
class accum;

template <ElemBaseType T, unsigned N>
class vector_elem_const_ref {
 public:
  using value_type = T;
  vector_elem_const_ref(const vector<T, N>& parent, unsigned index) : parent_(&parent), index_(index) {}
  T get() const { return parent_->get(index_); }
  operator T() const { return get(); }

 private:
  const vector<T, N>* parent_;
  unsigned index_;
};

template <ElemBaseType T, unsigned N>
class vector_elem_ref {
 public:
  using value_type = T;
  vector_elem_ref(vector<T, N>& parent, unsigned index) : parent_(&parent), index_(index) {}
  vector_elem_ref(const vector_elem_ref&) = default;
  T get() const { return parent_->get(index_); }
  operator T() const { return get(); }
  vector_elem_ref& operator=(T value) {
    parent_->set(value, index_);
    return *this;
  }
  vector_elem_ref& operator=(const vector_elem_ref& other) { return *this = other.get(); }

 private:
  vector<T, N>* parent_;
  unsigned index_;
};

namespace detail {

template <typename T>
struct operand {
  using type = T;
};
template <typename T, unsigned N>
struct operand<vector_elem_ref<T, N>> {
  using type = T;
};
template <typename T, unsigned N>
struct operand<vector_elem_const_ref<T, N>> {
  using type = T;
};
template <typename T>
inline constexpr bool is_vector_v = false;
template <typename T, unsigned N>
inline constexpr bool is_vector_v<vector<T, N>> = true;
template <typename T>
inline constexpr bool is_accum_v = false;
template <typename Tag, unsigned N>
inline constexpr bool is_accum_v<accum<Tag, N>> = true;

/// The integer type of twice (2) or half (-2) the width, or void.
template <typename T, int Factor>
struct resized {
  using type = void;
};
template <> struct resized<int8, 2> { using type = int16; };
template <> struct resized<uint8, 2> { using type = uint16; };
template <> struct resized<int16, 2> { using type = int32; };
template <> struct resized<uint16, 2> { using type = uint32; };
template <> struct resized<int16, -2> { using type = int8; };
template <> struct resized<uint16, -2> { using type = uint8; };
template <> struct resized<int32, -2> { using type = int16; };
template <> struct resized<uint32, -2> { using type = uint16; };

constexpr bool is_vector_size(unsigned bytes) {
  return bytes >= 16 && bytes <= 512 && (bytes & (bytes - 1)) == 0;
}

constexpr unsigned vector_alignment(unsigned bytes) {
  if (!is_vector_size(bytes)) return 16;
  return bytes < AIE_VECTOR_LDST_ALIGN ? bytes : AIE_VECTOR_LDST_ALIGN;
}

}  // namespace detail

template <typename T>
using operand_base_type_t = typename detail::operand<std::remove_cvref_t<T>>::type;
template <typename T>
concept Elem = ElemBaseType<operand_base_type_t<T>>;
template <typename T>
concept Vector = detail::is_vector_v<std::remove_cvref_t<T>>;
template <typename T>
concept Accum = detail::is_accum_v<std::remove_cvref_t<T>>;

template <ElemBaseType T, unsigned N>
class alignas(detail::vector_alignment(sizeof(T) * N)) [[gnu::may_alias]] vector {
  static_assert(detail::is_vector_size(sizeof(T) * N),
                "aie::vector: the API documents vectors of 128, 256, 512 and 1024 bits (larger ones: multiples)");

 public:
  using value_type = T;
  using native_type = vector;
  using storage_t = vector;

  static constexpr unsigned size() { return N; }
  static constexpr unsigned type_bits() { return sizeof(T) * 8; }
  static constexpr unsigned bits() { return N * type_bits(); }
  static constexpr unsigned bytes() { return bits() / 8; }
  static constexpr bool is_signed() { return detail::is_signed_v<T>; }
  static constexpr bool is_integral() { return std::is_integral_v<T>; }
  static constexpr bool is_floating_point() { return !is_integral(); }
  static constexpr bool is_real() { return true; }
  static constexpr bool is_complex() { return false; }

  /// Contents are undefined: filled with a pattern that is neither zero nor small.
  vector() { std::memset(static_cast<void*>(data_), aie_host::poison, sizeof data_); }

  template <typename... Values>
    requires((std::convertible_to<Values, T> && ...) && sizeof...(Values) < N)
  explicit vector(T first, Values... rest) : vector() {
    const T given[] = {first, static_cast<T>(rest)...};
    for (unsigned i = 0; i <= sizeof...(Values); ++i) data_[i] = given[i];
  }

  vector to_native() const { return *this; }

  T get(unsigned index) const {
    aie_host::require(index < N, "vector element index out of range");
    return data_[index];
  }
  void set(T value, unsigned index) {
    aie_host::require(index < N, "vector element index out of range");
    data_[index] = value;
  }
  vector_elem_ref<T, N> operator[](unsigned index) { return {*this, index}; }
  vector_elem_const_ref<T, N> operator[](unsigned index) const { return {*this, index}; }
  vector_elem_ref<T, N> elem_ref(unsigned index) { return {*this, index}; }
  vector_elem_const_ref<T, N> elem_ref(unsigned index) const { return {*this, index}; }
  vector_elem_const_ref<T, N> elem_const_ref(unsigned index) const { return {*this, index}; }

  vector& push(T value) {
    for (unsigned i = N - 1; i > 0; --i) data_[i] = data_[i - 1];
    data_[0] = value;
    return *this;
  }

  template <ElemBaseType D>
  auto cast_to() const {
    vector<D, N * sizeof(T) / sizeof(D)> out;
    std::memcpy(static_cast<void*>(out.data()), data_, sizeof data_);
    return out;
  }

  template <unsigned M>
  vector<T, M> extract(unsigned index) const {
    static_assert(M <= N && N % M == 0);
    aie_host::require(index < N / M, "extract: subvector index out of range");
    vector<T, M> out;
    std::memcpy(static_cast<void*>(out.data()), data_ + index * M, sizeof(T) * M);
    return out;
  }

  template <unsigned M>
  vector& insert(unsigned index, const vector<T, M>& part) {
    static_assert(M <= N && N % M == 0);
    aie_host::require(index < N / M, "insert: subvector index out of range");
    std::memcpy(static_cast<void*>(data_ + index * M), part.data(), sizeof(T) * M);
    return *this;
  }

  template <unsigned M>
  vector<T, M> grow(unsigned index = 0) const {
    vector<T, M> out;
    out.insert(index, *this);
    return out;
  }

  template <unsigned M>
  vector<T, M> grow_replicate() const {
    vector<T, M> out;
    for (unsigned i = 0; i < M / N; ++i) out.insert(i, *this);
    return out;
  }

  template <unsigned M>
  vector<T, M> grow_extract(unsigned index) const {
    if constexpr (M > N)
      return grow<M>();
    else
      return extract<M>(index);
  }

  template <typename... Parts>
  vector& upd_all(const Parts&... parts) {
    unsigned index = 0;
    (insert(index++, parts), ...);
    return *this;
  }

  template <unsigned M>
  auto split() const {
    return [this]<std::size_t... I>(std::index_sequence<I...>) {
      return std::make_tuple(extract<M>(I)...);
    }(std::make_index_sequence<N / M>{});
  }

  template <typename D = typename detail::resized<T, 2>::type>
  vector<D, N> unpack() const {
    return unpack_sign<D>(is_signed());
  }
  template <typename D = typename detail::resized<T, 2>::type>
  vector<D, N> unpack_sign(bool v_sign) const {
    static_assert(std::is_integral_v<T> && sizeof(D) > sizeof(T));
    vector<D, N> out;
    for (unsigned i = 0; i < N; ++i) out.data()[i] = static_cast<D>(lane_value(i, v_sign));
    return out;
  }

  /// Narrower elements: saturated or truncated as the tile's saturation mode says.
  template <typename D = typename detail::resized<T, -2>::type>
  vector<D, N> pack() const {
    return pack_sign<D>(detail::is_signed_v<D>);
  }
  template <typename D = typename detail::resized<T, -2>::type>
  vector<D, N> pack_sign(bool v_sign) const {
    static_assert(std::is_integral_v<T> && sizeof(D) < sizeof(T));
    vector<D, N> out;
    const auto mode = detail::current_modes().saturation;
    for (unsigned i = 0; i < N; ++i) out.data()[i] = detail::saturate_to<D>(data_[i], v_sign, mode);
    return out;
  }

  template <aie_dm_resource = aie_dm_resource::none>
  void load(const T* pointer);
  template <aie_dm_resource = aie_dm_resource::none>
  void store(T* pointer) const;
  template <aie_dm_resource = aie_dm_resource::none>
  void load_unaligned(const T* pointer, unsigned aligned_elems = 1);
  template <aie_dm_resource = aie_dm_resource::none>
  void store_unaligned(T* pointer, unsigned aligned_elems = 1) const;

  /// Host only: the lanes, for the operations of this library.
  T* data() { return data_; }
  const T* data() const { return data_; }

  /// Host only: the integer that lane i stands for when its bits are read with the given sign.
  std::int64_t lane_value(unsigned i, bool v_sign) const {
    if (v_sign) return static_cast<std::make_signed_t<T>>(data_[i]);
    return static_cast<std::make_unsigned_t<T>>(data_[i]);
  }

 private:
  T data_[N];
};

namespace detail {

/// The value of lane i of a vector, or the scalar itself.
template <typename T>
auto lane(const T& value, [[maybe_unused]] unsigned i) {
  if constexpr (is_vector_v<T>)
    return value.data()[i];
  else
    return static_cast<operand_base_type_t<T>>(value);
}

template <typename A, typename B>
struct pair_vector;
template <typename T, unsigned N, typename B>
struct pair_vector<vector<T, N>, B> {
  using type = vector<T, N>;
};
template <typename A, typename T, unsigned N>
  requires(!is_vector_v<A>)
struct pair_vector<A, vector<T, N>> {
  using type = vector<T, N>;
};
template <typename T>
struct element {
  using type = operand_base_type_t<T>;
};
template <typename T, unsigned N>
struct element<vector<T, N>> {
  using type = T;
};

template <typename T>
inline constexpr bool is_vector_or_elem_v = is_vector_v<T> || ElemBaseType<operand_base_type_t<T>>;

template <typename A, typename B>
inline constexpr bool same_size_v = true;
template <typename A, unsigned N, typename B, unsigned M>
inline constexpr bool same_size_v<vector<A, N>, vector<B, M>> = N == M;

}  // namespace detail

template <typename T>
using element_t = typename detail::element<std::remove_cvref_t<T>>::type;

/// A vector with a vector, or with a scalar or element reference; sizes equal.
template <typename A, typename B>
concept VectorPair = detail::is_vector_or_elem_v<A> && detail::is_vector_or_elem_v<B> && (Vector<A> || Vector<B>) &&
                     detail::same_size_v<A, B>;
/// As VectorPair, and the element types are the same (the API does not convert).
template <typename A, typename B>
concept MatchingPair = VectorPair<A, B> && std::is_same_v<element_t<A>, element_t<B>>;

}  // namespace aie
