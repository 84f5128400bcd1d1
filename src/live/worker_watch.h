// SPDX-License-Identifier: Apache-2.0
// WorkerWatch: keeps a dispatcher's workers equal to those that a directory or a list of addresses
// names. Belongs to the server's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/settings.h"
#include "live/discovery.h"
#include "live/dispatcher.h"
#include "live/engine_host.h"
#include "live/etcd_store.h"
#include "live/http_client.h"
#include "live/http_server.h"
#include "live/kv_event_codec.h"
#include "live/kv_subscriber.h"
#include "live/remote_link.h"
#include "live/worker_link.h"

namespace dynosim::live {

class WorkerWatch {
 public:
  // `prefill` gets the prefill workers, `dispatcher` all others. `model`: entries that serve
  // another one are left out.
  WorkerWatch(HttpServer& server, Dispatcher& dispatcher, Dispatcher& prefill, std::string model)
      : server_(server), dispatcher_(dispatcher), prefill_(prefill), model_(std::move(model)) {}
  WorkerWatch(const WorkerWatch&) = delete;
  WorkerWatch& operator=(const WorkerWatch&) = delete;

  // The dispatcher hears of the caches of all workers that publish KV events.
  void FollowKvEvents();
  void WatchDirectory(std::string folder);
  // A store that does not answer leaves everything as it is.
  void WatchEtcd(EtcdOptions options);
  // Asks for the cards until the process answers, and again when its workers are lost.
  void WatchAddress(const HttpAddress& address);

 private:
  struct Watched {
    std::string id;
    std::uint32_t place = 0;
    HttpAddress address;
    WorkerCard card;
    bool leaves = false;  // it finishes its streams
  };

  void LookAtDirectory();
  void LookAtEtcd();
  void Apply(const std::vector<DirectoryEntry>& entries);
  void LookAtAddress(const HttpAddress& address);
  void Add(const HttpAddress& address, std::uint32_t index, const WorkerCard& card);
  // What keeps a worker from serving with those that are there; empty: nothing.
  std::string Misfit(const WorkerCard& card) const;
  Dispatcher& PoolOf(const WorkerCard& card) const {
    return card.role == engine::WorkerRole::kPrefill ? prefill_ : dispatcher_;
  }
  // A worker that is on no list any more: it goes when its streams have ended, or at once when its
  // process does not answer.
  void Retire(const std::string& id);
  void Remove(std::string id);
  void OnEvents(const std::string& id, const std::vector<StreamEvent>& events);
  Watched* Find(const std::string& id);
  void Refollow();
  void OnKvUpdates(const std::string& id, std::uint32_t rank, const std::vector<KvUpdate>& updates);

  HttpServer& server_;
  Dispatcher& dispatcher_;
  Dispatcher& prefill_;
  std::string model_;
  std::string folder_;
  EtcdOptions etcd_;
  bool etcd_silent_ = false;
  std::vector<Watched> workers_;
  std::vector<std::string> refused_;          // workers that do not fit to the others
  std::unique_ptr<KvSubscriber> subscriber_;  // null: nobody wants events
};

}  // namespace dynosim::live
