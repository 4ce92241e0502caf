// The least CUDA code there is: tells a broken installation from a broken kernel.
#pragma once

namespace capstan {

// 2 * x, computed on the first GPU; negative: the number of the CUDA error.
int TwiceOnGpu(int x);

}  // namespace capstan
