// The part of a FileSystem that is about sessions, replicas and the cluster rather than names and bytes.
#include "client/core/file_system.h"
#include "client/core/master_client.h"

namespace picket {

// ---- leases ----------------------------------------------------------------------------------------

Task<Result<std::vector<proto::LeaseInfo>>> FileSystem::ListLeases(std::string under) {
  std::vector<proto::LeaseInfo> leases;
  proto::ListLeasesRequest request;
  request.set_under(std::move(under));
  while (true) {
    auto page = co_await master_->Read<proto::ListLeasesResponse>(proto::LIST_LEASES, request, Deadline());
    if (!page) co_return Fail(std::move(page).error());
    for (auto& lease : *page->mutable_leases()) leases.push_back(std::move(lease));
    if (!page->more() || page->leases().empty()) co_return leases;
    request.set_start_after(leases.back().inode());
  }
}

Task<Result<proto::ShowLeaseResponse>> FileSystem::ShowLease(std::string path) {
  proto::ShowLeaseRequest request;
  request.set_path(std::move(path));
  co_return co_await master_->Read<proto::ShowLeaseResponse>(proto::SHOW_LEASE, request, Deadline());
}

Task<Result<proto::RecoverLeaseResponse>> FileSystem::RecoverLease(std::string path, bool wait) {
  proto::RecoverLeaseRequest request;
  request.set_path(std::move(path));
  request.set_wait(wait);
  co_return co_await master_->Mutate<proto::RecoverLeaseResponse>(proto::RECOVER_LEASE, std::move(request),
                                                                  Deadline());
}

// ---- what the cluster says of itself ---------------------------------------------------------------

Task<Result<std::vector<proto::ChunkLocation>>> FileSystem::Chunks(std::string path) {
  std::vector<proto::ChunkLocation> chunks;
  proto::GetFileRequest request;
  request.set_path(std::move(path));
  request.set_all_replicas(true);
  while (true) {
    request.set_first_index(chunks.empty() ? 0 : chunks.back().index() + 1);
    auto page = co_await master_->Read<proto::GetFileResponse>(proto::GET_FILE, request, Deadline());
    if (!page) co_return Fail(std::move(page).error());
    for (auto& chunk : *page->mutable_chunks()) chunks.push_back(std::move(chunk));
    if (!page->more() || page->chunks().empty()) co_return chunks;
    // The later pages are of the same file, whatever its name means by then.
    request.clear_path();
    request.set_inode(page->status().inode());
  }
}

Task<Result<proto::DescribeChunkResponse>> FileSystem::DescribeChunk(ChunkId chunk) {
  proto::DescribeChunkRequest request;
  request.set_chunk(chunk.value);
  co_return co_await master_->Read<proto::DescribeChunkResponse>(proto::DESCRIBE_CHUNK, request, Deadline());
}

Task<Result<proto::ClusterReportResponse>> FileSystem::Report() {
  co_return co_await master_->Read<proto::ClusterReportResponse>(proto::CLUSTER_REPORT,
                                                                 proto::ClusterReportRequest(), Deadline());
}

// ---- an operator's means ---------------------------------------------------------------------------

Task<Result<proto::QuarantineResponse>> FileSystem::Quarantine(proto::QuarantineRequest request) {
  return master_->Mutate<proto::QuarantineResponse>(proto::QUARANTINE, std::move(request), Deadline());
}

Task<Result<proto::AdoptResponse>> FileSystem::Adopt(proto::AdoptRequest request) {
  return master_->Mutate<proto::AdoptResponse>(proto::ADOPT, std::move(request), Deadline());
}

}  // namespace picket
