// Modes and events of the tile a kernel runs on.
// Sources: aie_api tile.hpp, detail/aie2/tile.hpp, aie.hpp (set_rounding, set_saturation).
#pragma once

#include "srs.hpp"

namespace aie {

struct tile_id {
  std::uint16_t row;
  std::uint16_t col;
};

inline void set_rounding(rounding_mode mode) {
  aie_host_current_tile()->rounding = static_cast<std::int32_t>(mode);
}
inline void set_saturation(saturation_mode mode) {
  aie_host_current_tile()->saturation = static_cast<std::int32_t>(mode);
}
inline rounding_mode get_rounding() { return detail::current_modes().rounding; }
inline saturation_mode get_saturation() { return detail::current_modes().saturation; }

class tile {
  tile() = default;

 public:
  static tile current() { return {}; }
  tile_id global_id() const { return {0, static_cast<std::uint16_t>(aie_host_current_tile()->tile)}; }
  tile_id id() const { return global_id(); }
  void set_rounding(rounding_mode mode) { aie::set_rounding(mode); }
  void set_saturation(saturation_mode mode) { aie::set_saturation(mode); }
  rounding_mode get_rounding() const { return aie::get_rounding(); }
  saturation_mode get_saturation() const { return aie::get_saturation(); }
};

}  // namespace aie

inline void event0() { ++aie_host_current_tile()->event0_count; }
inline void event1() { ++aie_host_current_tile()->event1_count; }

inline void set_rnd(unsigned mode) { aie::set_rounding(static_cast<aie::rounding_mode>(mode)); }
inline void set_satmode(unsigned mode) { aie::set_saturation(static_cast<aie::saturation_mode>(mode)); }
inline void set_sat() { set_satmode(1); }
inline void clr_sat() { set_satmode(0); }
inline unsigned get_rnd() { return static_cast<unsigned>(aie::get_rounding()); }
inline unsigned get_satmode() { return static_cast<unsigned>(aie::get_saturation()); }
