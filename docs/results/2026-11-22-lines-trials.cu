#include "peer.cuh"
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>
#include <algorithm>
#include <cuda_runtime.h>
#define C(x) do{cudaError_t e_=(x); if(e_){printf("%s: %s line %d\n",#x,cudaGetErrorString(e_),__LINE__);exit(1);}}while(0)
using FF=Plain<float>;
#ifndef TB
#define TB 3
#endif
__global__ void __launch_bounds__(256,TB) k_two(const __grid_constant__ Arguments a){ two_shot<FF,ADDING,false>(a);}
__global__ void __launch_bounds__(256,3) k_one(const __grid_constant__ Arguments a){ one_shot<FF,ADDING,false>(a);}
__global__ void __launch_bounds__(512,2) k_s2(const __grid_constant__ Arguments a){ in_chunks<FF,ADDING,false,2>(a);}
__global__ void __launch_bounds__(512,2) k_s4(const __grid_constant__ Arguments a){ in_chunks<FF,ADDING,false,4>(a);}
__global__ void __launch_bounds__(512,1) k_s8(const __grid_constant__ Arguments a){ in_chunks<FF,ADDING,false,8>(a);}
#ifdef PHASED
// results are kept in shared memory and sent a chunk later, peer by peer, after what is contributed to the same peer
template <int BATCH> __device__ __forceinline__ void phased(const Arguments& a){
  using V=Vector<FF,ADDING>; using T=Tile<FF,ADDING,BATCH>;
  extern __shared__ uint4 kept[];
  __shared__ volatile int hopeless_at;
  Call call(a);
  if(__syncthreads_or(call.broken)) return;
  if(threadIdx.x==0) hopeless_at=INT_MAX;
  __syncthreads();
  T tile(a); int chunks=tile.chunks();
  if(threadIdx.x>=WORKERS) carry_messages(call,chunks,&hopeless_at);
  else {
    for(int c=0;c<=chunks+1;c++){
      for(int k=1;k<a.ranks;k++){ int peer=after(a,k);
        if(c<chunks) tile.contribute(peer,c);
        if(c>1){ // results of c-2
          long long i=a.rank*tile.shard+(c-2)*tile.chunk+tile.at, last=tile.end(a.rank);
          for(int b=0;b<a.batches;b++,i+=tile.stride){
            #pragma unroll
            for(int u=0;u<BATCH;u++) if(i+u*WORKERS<last) store(static_cast<uint4*>(a.buffers[peer])+i+u*WORKERS, kept[(b*BATCH+u)*WORKERS+threadIdx.x]);
          }
        }
      }
      if(c<chunks) barrier_come(SENT+(c&1));
      if(c>0&&c<=chunks){
        barrier_wait(RECEIVED+(c-1&1));
        if(hopeless_at<c) break;
        int d=c-1; long long i=a.rank*tile.shard+d*tile.chunk+tile.at,last=tile.end(a.rank); long long in=((long long)(d%SLOTS)*(a.ranks-1))*a.stride+tile.at;
        for(int b=0;b<a.batches;b++,i+=tile.stride,in+=tile.stride){
          uint4 r[BATCH];
          if(tile.full(i,last)) tile.template add_up<true>(i,last,a.staging[a.rank]+in,r); else tile.template add_up<false>(i,last,a.staging[a.rank]+in,r);
          #pragma unroll
          for(int u=0;u<BATCH;u++){ kept[(b*BATCH+u)*WORKERS+threadIdx.x]=r[u]; if(i+u*WORKERS<last) store(static_cast<uint4*>(a.buffers[a.rank])+i+u*WORKERS,r[u]); }
        }
      }
    }
    call.failed=hopeless_at<chunks;
  }
  leave_together<false>(call);
}
__global__ void __launch_bounds__(512,2) k_p2(const __grid_constant__ Arguments a){ phased<2>(a);}
__global__ void __launch_bounds__(512,2) k_p4(const __grid_constant__ Arguments a){ phased<4>(a);}
__global__ void __launch_bounds__(512,1) k_p8(const __grid_constant__ Arguments a){ phased<8>(a);}
#endif
int main(int argc,char**argv){
  int n; C(cudaGetDeviceCount(&n)); if(argc>1) n=std::min(n,atoi(argv[1]));
  bool big=argc>2&&!strcmp(argv[2],"big");
  size_t most=big?(size_t)1<<30:(size_t)64<<20;
  const size_t ONE=8<<20,STREAM=(size_t)128<<20;
  size_t oneR=ONE/n/448, twoR=ONE/n/448+1, offTwo=sizeof(Mailbox)+2*n*oneR*512, offS=offTwo+2*n*twoR*512;
  std::vector<char*> mail(n),buf(n); std::vector<Report*> rep(n); std::vector<cudaStream_t> s(n); std::vector<cudaEvent_t> t0(n),t1(n); std::vector<std::vector<float>> ref;
  for(int d=0;d<n;d++){ C(cudaSetDevice(d)); for(int e=0;e<n;e++) if(e!=d) C(cudaDeviceEnablePeerAccess(e,0));
    C(cudaMalloc(&mail[d],offS+STREAM)); C(cudaMemset(mail[d],0,offS+STREAM)); C(cudaMalloc(&buf[d],most)); C(cudaHostAlloc(&rep[d],4096,cudaHostAllocMapped)); memset(rep[d],0,4096); C(cudaStreamCreateWithFlags(&s[d],cudaStreamNonBlocking)); C(cudaEventCreate(&t0[d])); C(cudaEventCreate(&t1[d])); C(cudaDeviceSynchronize()); }
  std::vector<float> h(most/4);
  auto bench=[&](const char*name,void(*f)(const Arguments),int way,int T,size_t bytes,int blocks,int batch,int batches,int smem,int calls){
    size_t stride= way==0? oneR*32 : way==1? twoR*32 : STREAM/16/4/(n-1);
    if(way==2 && (size_t)480*batch*blocks*batches>stride) return;
    for(int d=0;d<n;d++){ C(cudaSetDevice(d)); for(size_t i=0;i<h.size()&&i<bytes/4;i++) h[i]=(float)((i*(d+3))%1021); C(cudaMemcpy(buf[d],h.data(),bytes,cudaMemcpyHostToDevice)); if(smem)C(cudaFuncSetAttribute((const void*)f,cudaFuncAttributeMaxDynamicSharedMemorySize,smem)); int occ; C(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&occ,(const void*)f,T,smem)); if(occ*132<blocks){ printf("%s b%d does not fit (%d)\n",name,blocks,occ); return;} }
    std::vector<Arguments> a(n);
    for(int d=0;d<n;d++){ memset(&a[d],0,sizeof(Arguments)); for(int r=0;r<n;r++){a[d].mailboxes[r]=(Mailbox*)mail[r]; a[d].buffers[r]=buf[r]; a[d].staging[r]=(uint4*)(mail[r]+(way==0?sizeof(Mailbox):way==1?offTwo:offS)); }
      a[d].report=rep[d]; a[d].count=bytes/4; a[d].stride=stride; a[d].plan=77; a[d].timeout=2000000000ull; a[d].rank=d; a[d].ranks=n; a[d].batches=batches; a[d].aligned=(1<<n)-1; a[d].op=AVERAGE; }
    std::vector<cudaGraphExec_t> g(n);
    for(int d=0;d<n;d++){ C(cudaSetDevice(d)); cudaGraph_t gr; C(cudaStreamBeginCapture(s[d],cudaStreamCaptureModeThreadLocal)); for(int i=0;i<calls;i++) f<<<blocks,T,smem,s[d]>>>(a[d]); C(cudaStreamEndCapture(s[d],&gr)); C(cudaGraphInstantiate(&g[d],gr,0)); C(cudaGraphDestroy(gr)); }
    std::vector<double> all; bool wrong=false;
    for(int d=0;d<n;d++){ C(cudaSetDevice(d)); f<<<blocks,T,smem,s[d]>>>(a[d]); } 
    for(int d=0;d<n;d++){ C(cudaSetDevice(d)); C(cudaStreamSynchronize(s[d])); if(rep[d]->failure){ printf("%s %zu b%d failure %llu\n",name,bytes,blocks,rep[d]->failure); exit(1);} }
    for(int d=0;d<n;d++){ C(cudaSetDevice(d)); C(cudaMemcpy(h.data(),buf[d],bytes,cudaMemcpyDeviceToHost)); size_t step=bytes>(64<<20)?997:1; for(size_t i=0;i<bytes/4;i+=step){ float x=0; for(int r=0;r<n;r++) x+= (float)((i*(r+3))%1021); x/=n; if(h[i]!=x){ if(!wrong) printf("%s %zu b%d WRONG gpu %d at %zu: %g %g\n",name,bytes,blocks,d,i,h[i],x); wrong=true; break; } } }
    for(int r=0;r<7;r++){
      for(int d=0;d<n;d++){ C(cudaSetDevice(d)); f<<<blocks,T,smem,s[d]>>>(a[d]); C(cudaEventRecord(t0[d],s[d])); C(cudaGraphLaunch(g[d],s[d])); C(cudaEventRecord(t1[d],s[d])); }
      double worst=0; for(int d=0;d<n;d++){ C(cudaSetDevice(d)); C(cudaStreamSynchronize(s[d])); float ms; C(cudaEventElapsedTime(&ms,t0[d],t1[d])); worst=std::max<double>(worst,ms);} if(r) all.push_back(worst*1000/calls); }
    std::sort(all.begin(),all.end());
    for(int d=0;d<n;d++) C(cudaGraphExecDestroy(g[d]));
    double t=all[all.size()/2]; printf("%-6s n%d %10zu B b%d batch%d x%d chunk %.2f MB: %.2f us (%.2f)  busbw %.1f%s\n",name,n,bytes,blocks,batch,batches,480.0*batch*blocks*batches*16/1e6,t,all[0],bytes*2.0*(n-1)/n/t/1e3,wrong?" WRONG":""); fflush(stdout);
  };
  if(!big){
    for(size_t b: {(size_t)256<<10,(size_t)512<<10,(size_t)1<<20,(size_t)2<<20,(size_t)4<<20,(size_t)8<<20}){
      size_t need=((b/16/n)+8*28-1)/(8*28);
      for(int blocks: {66,132,198,264,330,396}){ if(blocks>TB*132) continue; bool capped=(size_t)blocks>=need; bench("two",k_two,1,256,b,std::min<size_t>(blocks,need),0,1,0,b>=(4<<20)?50:100); if(capped)break; }
      if(b<=(1<<20)){ need=(b/16+223)/224; bench("one",k_one,0,256,b,std::min<size_t>(396,need),0,1,0,100); }
      if(b>=(2<<20)) for(int blocks:{66,132,264}) { size_t per=480*2*blocks, sh=b/16/n; int nb=std::max<size_t>(1,(sh+per-1)/per); bench("s2",k_s2,2,512,b,std::min<size_t>(blocks,(sh+959)/960),2,nb,0,50);} 
    }
  } else {
    for(size_t b: {(size_t)64<<20,(size_t)1<<30}){ int calls=b>(64<<20)?5:20;
      for(int x: {1,2,4,8}) bench("s2",k_s2,2,512,b,264,2,x,0,calls);
      for(int x: {1,2}) bench("s4",k_s4,2,512,b,264,4,x,0,calls);
      for(int x: {1,2}) bench("s4",k_s4,2,512,b,132,4,x,0,calls);
      for(int x: {1,2,4}) bench("s8",k_s8,2,512,b,132,8,x,0,calls);
#ifdef PHASED
      for(int x: {1,2,4,6}) bench("p2",k_p2,2,512,b,264,2,x,x*2*480*16,calls);
      for(int x: {1,2,3}) bench("p4",k_p4,2,512,b,264,4,x,x*4*480*16,calls);
      for(int x: {1,2,3}) bench("p4",k_p4,2,512,b,132,4,x,x*4*480*16,calls);
      for(int x: {1,2,3}) bench("p8",k_p8,2,512,b,132,8,x,x*8*480*16,calls);
#endif
    }
  }
}
