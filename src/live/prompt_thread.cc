// SPDX-License-Identifier: Apache-2.0
#include "live/prompt_thread.h"

#include <cstdint>

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace dynosim::live {

namespace {

// The first version of the kernel's sched_attr; its header redefines types of <sched.h>.
struct SchedulingAttributes {
  std::uint32_t size = 0;
  std::uint32_t policy = 0;  // 0: an ordinary thread
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime_ns = 0;  // the slice of an ordinary thread, since Linux 6.12
  std::uint64_t deadline_ns = 0;
  std::uint64_t period_ns = 0;
};
static_assert(sizeof(SchedulingAttributes) == 48);

constexpr std::uint64_t kShortestSliceNs = 100'000;

}  // namespace

void WakePromptly() {
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  SchedulingAttributes attributes;
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0U) == 0 &&
      attributes.policy == 0 && attributes.flags == 0) {
    attributes.runtime_ns = kShortestSliceNs;
    (void)syscall(SYS_sched_setattr, 0, &attributes, 0U);
  }
}

}  // namespace dynosim::live
