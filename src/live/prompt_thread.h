// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace dynosim::live {

// Lets the calling thread wake up as close to its deadlines as an ordinary thread can: timers
// without the default slack of 50 us, and the shortest slice of the scheduler, so that a wake-up
// does not wait for the slice of another thread. What the system refuses stays as it is.
void WakePromptly();

}  // namespace dynosim::live
