// SPDX-License-Identifier: Apache-2.0
// Discovery over etcd v3, through its JSON gateway: one key per worker process, bound to a lease
// that the process keeps alive. When it dies, etcd removes the key.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "live/discovery.h"
#include "live/http_client.h"

namespace boost::asio {
class io_context;
}

namespace dynosim::live {

struct EtcdOptions {
  HttpAddress endpoint;
  std::string prefix = "dynosim/workers/";  // of the keys
};

// The key of this process, from the constructor to Withdraw. A store that does not answer is tried
// again, with one warning; a lease that was lost is replaced.
class EtcdRegistration {
 public:
  EtcdRegistration(EtcdOptions options, const DirectoryEntry& entry);
  EtcdRegistration(const EtcdRegistration&) = delete;
  EtcdRegistration& operator=(const EtcdRegistration&) = delete;
  ~EtcdRegistration();

  // The key goes soon after; does not wait for it.
  void Withdraw();

 private:
  void Run();
  Result<void> Renew();

  EtcdOptions options_;
  std::string key_, value_;
  std::string lease_;  // empty: none
  std::mutex mutex_;
  std::condition_variable wake_;
  bool withdrawn_ = false;
  std::thread thread_;  // the last member: it uses the others
};

// Entries in order of their ids, or why there was no answer. Values that cannot be read are left
// out.
void ListEtcd(boost::asio::io_context& context, const EtcdOptions& options,
              std::function<void(Result<std::vector<DirectoryEntry>>)> done);

}  // namespace dynosim::live
