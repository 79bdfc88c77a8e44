// ADF windows and streams are not modelled; kernels that include this header only for the API compile.
#pragma once

#include "aie.hpp"
