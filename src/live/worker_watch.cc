// SPDX-License-Identifier: Apache-2.0
#include "live/worker_watch.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/result.h"
#include "engine/settings.h"
#include "engine/settings_decode.h"
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

namespace {

constexpr double kLookEveryMs = 250.0;
constexpr double kAskEveryMs = 500.0;
// How long a worker that failed is left out.
constexpr double kAsideMs = 5000.0;

}  // namespace

void WorkerWatch::WatchDirectory(std::string folder) {
  folder_ = std::move(folder);
  LookAtDirectory();
}

void WorkerWatch::WatchEtcd(EtcdOptions options) {
  etcd_ = std::move(options);
  LookAtEtcd();
}

void WorkerWatch::WatchAddress(const HttpAddress& address) { LookAtAddress(address); }

WorkerWatch::Watched* WorkerWatch::Find(const std::string& id) {
  const auto found = std::ranges::find(workers_, id, &Watched::id);
  return found == workers_.end() ? nullptr : &*found;
}

// Workers of one pool are alike; the two pools speak of the same blocks; no worker serves whole
// requests beside pools.
std::string WorkerWatch::Misfit(const WorkerCard& card) const {
  const bool prefill = card.role == engine::WorkerRole::kPrefill;
  if (const WorkerCard* other = PoolOf(card).AnyCard()) {
    if (other->role != card.role) {
      return fmt::format("it is {} and the others are {}", engine::WorkerRoleName(card.role),
                         engine::WorkerRoleName(other->role));
    }
    if (other->ranks != card.ranks || other->block_size != card.block_size ||
        other->backend != card.backend) {
      return "its ranks, block size or engine type differ from those of the others";
    }
  }
  if (const WorkerCard* other = (prefill ? dispatcher_ : prefill_).AnyCard()) {
    if ((prefill ? other : &card)->role != engine::WorkerRole::kDecode) {
      return fmt::format("it is {} and others are {}", engine::WorkerRoleName(card.role),
                         engine::WorkerRoleName(other->role));
    }
    if (other->block_size != card.block_size || other->backend != card.backend) {
      return fmt::format(
          "its engine type and block size are {} and {}, those of {} workers {} and {}",
          engine::BackendName(card.backend), card.block_size, engine::WorkerRoleName(other->role),
          engine::BackendName(other->backend), other->block_size);
    }
  }
  return "";
}

void WorkerWatch::Add(const HttpAddress& address, std::uint32_t index, const WorkerCard& card) {
  if (Watched* known = Find(card.id)) {
    if (std::exchange(known->leaves, false)) {
      PoolOf(card).SetAside(known->place, false);
    }
    return;
  }
  if (const std::string why = Misfit(card); !why.empty()) {
    if (std::ranges::find(refused_, card.id) == refused_.end()) {
      refused_.push_back(card.id);
      std::fprintf(stderr, "dynosim: warning: worker %s is left out: %s\n", card.id.c_str(),
                   why.c_str());
    }
    return;
  }
  const std::uint32_t place = PoolOf(card).AddWorker(std::make_unique<RemoteLink>(
      server_, address, index, card,
      [this, id = card.id](std::vector<StreamEvent>&& events) { OnEvents(id, events); }));
  workers_.push_back({.id = card.id, .place = place, .address = address, .card = card});
  Refollow();
}

void WorkerWatch::FollowKvEvents() {
  subscriber_ = std::make_unique<KvSubscriber>(
      [this](const KvChannel& channel, std::vector<KvUpdate>&& updates) {
        server_.Post([this, id = channel.worker, rank = channel.rank, list = std::move(updates)] {
          OnKvUpdates(id, rank, list);
        });
      });
}

void WorkerWatch::Refollow() {
  if (subscriber_ == nullptr) {
    return;
  }
  std::vector<KvChannel> channels;
  for (const Watched& worker : workers_) {
    if (worker.card.kv_events_port == 0) {
      continue;
    }
    for (std::uint32_t rank = 0; rank < worker.card.ranks; ++rank) {
      const auto endpoint = [&](std::uint32_t port) {
        return port == 0 ? "" : fmt::format("tcp://{}:{}", worker.address.host, port + rank);
      };
      channels.push_back({.worker = worker.id,
                          .rank = rank,
                          .events = endpoint(worker.card.kv_events_port),
                          .replay = endpoint(worker.card.kv_replay_port)});
    }
  }
  subscriber_->Follow(std::move(channels));
}

void WorkerWatch::OnKvUpdates(const std::string& id, std::uint32_t rank,
                              const std::vector<KvUpdate>& updates) {
  const Watched* found = Find(id);
  if (found == nullptr) {
    return;
  }
  std::vector<KvChange> changes;
  for (const KvUpdate& update : updates) {
    changes.push_back(
        {.worker = found->place, .rank = rank, .stored = update.stored, .blocks = update.blocks});
  }
  PoolOf(found->card).OnKvChanges(changes);
}

// A lost stream says that its worker is in trouble.
void WorkerWatch::OnEvents(const std::string& id, const std::vector<StreamEvent>& events) {
  const bool lost = std::ranges::any_of(
      events, [](const StreamEvent& e) { return e.kind == StreamEvent::Kind::kLost; });
  const Watched* found = Find(id);
  if (found == nullptr) {
    return;
  }
  Dispatcher& pool = PoolOf(found->card);
  if (lost) {
    pool.SetAside(found->place, true);
    server_.After(kAsideMs, [this, id] {
      const Watched* again = Find(id);
      if (again != nullptr && !again->leaves) {
        PoolOf(again->card).SetAside(again->place, false);
      }
    });
  }
  pool.OnBatch(events);
}

void WorkerWatch::Retire(const std::string& id) {
  FetchCards(server_, Find(id)->address, [this, id](const Result<std::vector<WorkerCard>>& cards) {
    const Watched* worker = Find(id);
    if (worker == nullptr || !worker->leaves) {
      return;
    }
    const bool there = cards && std::ranges::find(*cards, id, &WorkerCard::id) != cards->end();
    if (!there || PoolOf(worker->card).LoadOf(worker->place).requests == 0) {
      Remove(id);
    } else {
      server_.After(kLookEveryMs, [this, id] {
        if (const Watched* again = Find(id); again != nullptr && again->leaves) {
          Retire(id);
        }
      });
    }
  });
}

// Out of the list first: lost streams may look for another worker at once.
// NOLINTNEXTLINE(performance-unnecessary-value-param): it may be that of the entry that goes.
void WorkerWatch::Remove(std::string id) {
  const auto found = std::ranges::find(workers_, id, &Watched::id);
  const Watched gone = std::move(*found);
  workers_.erase(found);
  PoolOf(gone.card).RemoveWorker(gone.place);
  Refollow();
}

void WorkerWatch::LookAtDirectory() {
  Apply(ListDirectory(folder_));
  server_.After(kLookEveryMs, [this] { LookAtDirectory(); });
}

void WorkerWatch::LookAtEtcd() {
  ListEtcd(server_.context(), etcd_, [this](const Result<std::vector<DirectoryEntry>>& entries) {
    if (entries) {
      etcd_silent_ = false;
      Apply(*entries);
    } else if (!std::exchange(etcd_silent_, true)) {
      std::fprintf(stderr, "dynosim: warning: %s\n", entries.error().Text().c_str());
    }
    server_.After(kLookEveryMs, [this] { LookAtEtcd(); });
  });
}

void WorkerWatch::Apply(const std::vector<DirectoryEntry>& entries) {
  std::vector<std::string> alive;
  for (const DirectoryEntry& entry : entries) {
    if (entry.model != model_) {
      continue;
    }
    for (std::uint32_t index = 0; index < entry.cards.size(); ++index) {
      alive.push_back(entry.cards[index].id);
      Add(entry.address, index, entry.cards[index]);
    }
  }
  for (Watched& worker : workers_) {
    if (!worker.leaves && std::ranges::find(alive, worker.id) == alive.end()) {
      worker.leaves = true;
      PoolOf(worker.card).SetAside(worker.place, true);
      Retire(worker.id);
    }
  }
}

void WorkerWatch::LookAtAddress(const HttpAddress& address) {
  FetchCards(server_, address, [this, address](Result<std::vector<WorkerCard>> cards) {
    if (cards) {
      for (std::uint32_t index = 0; index < cards->size(); ++index) {
        Add(address, index, (*cards)[index]);
      }
    }
    // A process that has gone, or has come back with other workers.
    for (std::size_t i = workers_.size(); i-- > 0;) {
      const bool there =
          cards && std::ranges::find(*cards, workers_[i].id, &WorkerCard::id) != cards->end();
      if (i < workers_.size() && workers_[i].address == address && !there) {
        Remove(workers_[i].id);
      }
    }
    server_.After(kAskEveryMs, [this, address] { LookAtAddress(address); });
  });
}

}  // namespace dynosim::live
