// State of the tiles and the cascade queues behind the host headers; compiled once into every kernel library.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>

#include "include/aie_api/host/srs.hpp"

namespace {

std::map<std::int32_t, aie_host_tile_state>& tiles() {
  static std::map<std::int32_t, aie_host_tile_state> all;
  return all;
}

aie_host_tile_state* current = nullptr;
std::deque<std::uint8_t> cascade_input;
std::deque<std::uint8_t> cascade_output;

aie_host_tile_state* tile_of(std::int32_t tile) {
  // Hardware defaults: floor and none, both code 0.
  return &tiles().try_emplace(tile, aie_host_tile_state{tile, 0, 0, 0, 0}).first->second;
}

}  // namespace

extern "C" {

aie_host_tile_state* aie_host_current_tile(void) {
  if (current == nullptr) current = tile_of(0);
  return current;
}

void aie_host_select_tile(std::int32_t tile) { current = tile_of(tile); }

void aie_host_reset(void) {
  tiles().clear();
  current = nullptr;
  cascade_input.clear();
  cascade_output.clear();
}

void aie_host_get_modes(std::int32_t* rounding, std::int32_t* saturation) {
  *rounding = aie_host_current_tile()->rounding;
  *saturation = aie_host_current_tile()->saturation;
}

void aie_host_get_events(std::uint64_t* event0, std::uint64_t* event1) {
  *event0 = aie_host_current_tile()->event0_count;
  *event1 = aie_host_current_tile()->event1_count;
}

void aie_host_cascade_put(const std::uint8_t* word, std::size_t bytes) {
  cascade_output.insert(cascade_output.end(), word, word + bytes);
}

void aie_host_cascade_get(std::uint8_t* word, std::size_t bytes) {
  aie_host::require(cascade_input.size() >= bytes, "cascade read, but the neighbour put no more words");
  for (std::size_t i = 0; i < bytes; ++i) {
    word[i] = cascade_input.front();
    cascade_input.pop_front();
  }
}

void aie_host_cascade_set_input(const std::uint8_t* data, std::size_t bytes) {
  cascade_input.assign(data, data + bytes);
}

std::size_t aie_host_cascade_take_output(std::uint8_t* out, std::size_t capacity) {
  const std::size_t count = cascade_output.size() < capacity ? cascade_output.size() : capacity;
  for (std::size_t i = 0; i < count; ++i) {
    out[i] = cascade_output.front();
    cascade_output.pop_front();
  }
  return count;
}

std::size_t aie_host_cascade_unread(void) { return cascade_input.size(); }
}
