// Public kernels include "../aie_arch.h"; with -I .../include that name leads here.
#include "include/aie_arch.h"
