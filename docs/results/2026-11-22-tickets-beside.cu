// A training step (8 x 4096, 1024 rows, TF32 products) on all GPUs of one process, with the traffic of averages carried by copy
// engines and added up by few blocks. A trial of time: nobody waits for the others' contributions, so sums are of whatever lies there.
#include <atomic>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>
#include <dlfcn.h>
#include <cuda.h>
#include <cuda_runtime.h>
#define C(x) do{cudaError_t e_=(x); if(e_){printf("%s: %s line %d\n",#x,cudaGetErrorString(e_),__LINE__);fflush(stdout);exit(1);}}while(0)
#define D(x) do{int e_=(int)(x); if(e_){printf("%s: %d line %d\n",#x,e_,__LINE__);fflush(stdout);exit(1);}}while(0)
typedef void* H;
static int (*create)(H*); static int (*setStream)(H,cudaStream_t); static int (*setWs)(H,void*,size_t);
static int (*setMath)(H,int);
static int (*batched)(H,int,int,int,int,int,const float*,const float*,int,long long,const float*,int,long long,const float*,float*,int,long long,int);
static int (*gemm)(H,int,int,int,int,int,const float*,const float*,int,const float*,int,const float*,float*,int);
static CUresult (*writeValue)(CUstream,CUdeviceptr,cuuint32_t,unsigned); static CUresult (*waitValue)(CUstream,CUdeviceptr,cuuint32_t,unsigned);
__global__ void relu(float4* x,long n){ long i=blockIdx.x*(long)blockDim.x+threadIdx.x; if(i<n){ float4 v=x[i]; v.x=fmaxf(v.x,0);v.y=fmaxf(v.y,0);v.z=fmaxf(v.z,0);v.w=fmaxf(v.w,0); x[i]=v; } }
__global__ void mask(float4* x,const float4* y,long n,const float4* parts,int k){ long i=blockIdx.x*(long)blockDim.x+threadIdx.x; if(i<n){ float4 v,w=y[i]; if(k==1) v=x[i]; else { v=parts[i]; for(int p=1;p<k;p++){ float4 q=parts[i+p*n]; v.x+=q.x;v.y+=q.y;v.z+=q.z;v.w+=q.w; } } if(w.x<=0)v.x=0; if(w.y<=0)v.y=0; if(w.z<=0)v.z=0; if(w.w<=0)v.w=0; x[i]=v; } }
__global__ void update(float4* w,const float4* g,float r,long n){ long i=blockIdx.x*(long)blockDim.x+threadIdx.x; if(i<n){ float4 v=w[i],d=g[i]; v.x-=r*d.x;v.y-=r*d.y;v.z-=r*d.z;v.w-=r*d.w; w[i]=v; } }
struct Work{ const float4* part[8]; float4* result; long n; };
template<int N> __device__ void add_up(const Work& w){
  long step=(long)gridDim.x*blockDim.x; long i=blockIdx.x*(long)blockDim.x+threadIdx.x;
  constexpr int U = N>4?2:4;
  for(;i+(U-1)*step<w.n;i+=U*step){
    float4 v[U][N];
#pragma unroll
    for(int u=0;u<U;u++)
#pragma unroll
      for(int p=0;p<N;p++) v[u][p]=__ldcs(w.part[p]+i+u*step);
#pragma unroll
    for(int u=0;u<U;u++){ float4 s=v[u][0];
#pragma unroll
      for(int p=1;p<N;p++){ s.x+=v[u][p].x;s.y+=v[u][p].y;s.z+=v[u][p].z;s.w+=v[u][p].w; } w.result[i+u*step]=s; }
  }
}
__device__ void add_up(const Work& w,int n){ if(n==2) add_up<2>(w); else if(n==4) add_up<4>(w); else add_up<8>(w); }
__global__ void __launch_bounds__(512,1) reduce(Work w,int n){ add_up(w,n); }
// resident for a whole step: waits for each layer's turn, adds up, and tells
struct All{ Work w[8]; unsigned* turn; unsigned* done; unsigned* count; unsigned base; int n; };
__global__ void __launch_bounds__(512,1) resident(All a){
  for(int k=0;k<8;k++){
    if(threadIdx.x==0) while(*(volatile unsigned*)a.turn<a.base+k+1) __nanosleep(200);
    __syncthreads();
    add_up(a.w[k],a.n);
    __syncthreads();
    if(threadIdx.x==0){ __threadfence_system(); if(atomicAdd(a.count,1)+1==(a.base+k+1)*gridDim.x){ __threadfence_system(); *(volatile unsigned*)a.done=a.base+k+1; } }
  }
}

// Averages of a shard for each rank. A: each block deals with the same block of the other ranks, as wide does. B: blocks take
// tiles as they come, the ranks' tiles in the same order.
struct Avg{ float4* grad[8]; uint4* stage[8]; uint4* res[8]; unsigned long long* flags[8]; unsigned* counters; long shard; int n,r; unsigned long long call; int tiles; };
constexpr int F=4096; // flags: [0..F) contributions by tile, [F..2F) results by tile, [2F..) by block: begin, end; each for 8 ranks
__device__ __forceinline__ void tellAll(unsigned long long*p,unsigned long long v){ asm volatile("st.release.sys.global.u64 [%0], %1;"::"l"(p),"l"(v):"memory"); }
__device__ __forceinline__ unsigned long long look(unsigned long long*p){ unsigned long long v; asm volatile("ld.relaxed.sys.global.u64 %0, [%1];":"=l"(v):"l"(p):"memory"); return v; }
__device__ __forceinline__ void fence(){ asm volatile("fence.acq_rel.sys;":::"memory"); }
__device__ __forceinline__ void await(unsigned long long*p,unsigned long long v){ while(look(p)<v); }
__device__ __forceinline__ uint4 recv(const uint4*p){ uint4 v; asm volatile("ld.volatile.global.v4.u32 {%0,%1,%2,%3},[%4];":"=r"(v.x),"=r"(v.y),"=r"(v.z),"=r"(v.w):"l"(p):"memory"); return v; }
__device__ __forceinline__ float4 recvf(const void*p){ uint4 v=recv((const uint4*)p); return *(float4*)&v; }
constexpr int T=512;
__device__ __forceinline__ unsigned pack(float a,float b){ unsigned r; asm("cvt.rn.bf16x2.f32 %0,%1,%2;":"=r"(r):"f"(b),"f"(a)); return r; }
__device__ __forceinline__ uint4 narrow(float4 a,float4 b){ return make_uint4(pack(a.x,a.y),pack(a.z,a.w),pack(b.x,b.y),pack(b.z,b.w)); }
__device__ __forceinline__ float lo(unsigned u){ return __uint_as_float(u<<16); } __device__ __forceinline__ float hi(unsigned u){ return __uint_as_float(u&0xffff0000u); }
template<int N,bool NARROW> struct Tile {
  static constexpr int U = NARROW?4:8; // vectors on the wire for each thread
  const Avg&a; __device__ Tile(const Avg&a):a(a){}
  __device__ long at(int t) const { return (long)t*T*U+threadIdx.x; }
  __device__ void contribute(int t) const {
    int first=threadIdx.x/32%(N-1);
    for(int k=1;k<N;k++){ int kk=k+first<N?k+first:k+first-(N-1); int p=(a.r+kk)%N;
      if(NARROW){ uint4 v[U];
#pragma unroll
        for(int u=0;u<U;u++){ const float4* q=a.grad[a.r]+2*(p*a.shard+at(t)+u*T); v[u]=narrow(q[0],q[1]); }
#pragma unroll
        for(int u=0;u<U;u++) a.stage[p][a.r*a.shard+at(t)+u*T]=v[u];
      } else { float4 v[U];
#pragma unroll
        for(int u=0;u<U;u++) v[u]=a.grad[a.r][p*a.shard+at(t)+u*T];
#pragma unroll
        for(int u=0;u<U;u++) a.stage[p][a.r*a.shard+at(t)+u*T]=*(uint4*)&v[u]; } }
  }
  __device__ void reduce(int t) const {
    if(NARROW){ float4 s[U][2];
      for(int p=0;p<N;p++){ uint4 v[U]; float4 w[U][2];
        if(p==a.r){
#pragma unroll
          for(int u=0;u<U;u++){ const float4* q=a.grad[a.r]+2*(p*a.shard+at(t)+u*T); v[u]=narrow(q[0],q[1]); }
        } else {
#pragma unroll
          for(int u=0;u<U;u++) v[u]=recv(a.stage[a.r]+p*a.shard+at(t)+u*T); }
#pragma unroll
        for(int u=0;u<U;u++){ w[u][0]=make_float4(lo(v[u].x),hi(v[u].x),lo(v[u].y),hi(v[u].y)); w[u][1]=make_float4(lo(v[u].z),hi(v[u].z),lo(v[u].w),hi(v[u].w));
          for(int h=0;h<2;h++) if(p==0) s[u][h]=w[u][h]; else { s[u][h].x+=w[u][h].x;s[u][h].y+=w[u][h].y;s[u][h].z+=w[u][h].z;s[u][h].w+=w[u][h].w; } } }
      uint4 r[U];
#pragma unroll
      for(int u=0;u<U;u++) r[u]=narrow(s[u][0],s[u][1]);
      for(int k=1;k<N;k++){ int p=(a.r+k)%N;
#pragma unroll
        for(int u=0;u<U;u++) a.res[p][a.r*a.shard+at(t)+u*T]=r[u]; }
#pragma unroll
      for(int u=0;u<U;u++){ float4* q=a.grad[a.r]+2*(a.r*a.shard+at(t)+u*T); q[0]=s[u][0]; q[1]=s[u][1]; }
    } else { float4 s[U];
      for(int p=0;p<N;p++){ float4 v[U];
#pragma unroll
        for(int u=0;u<U;u++) v[u]= recvf(p==a.r?(const void*)(a.grad[a.r]+p*a.shard+at(t)+u*T):(const void*)(a.stage[a.r]+p*a.shard+at(t)+u*T));
#pragma unroll
        for(int u=0;u<U;u++) if(p==0) s[u]=v[u]; else { s[u].x+=v[u].x;s[u].y+=v[u].y;s[u].z+=v[u].z;s[u].w+=v[u].w; } }
      for(int k=0;k<N;k++){ 
#pragma unroll
        for(int u=0;u<U;u++){ int p=(a.r+k+u)%N; a.grad[p][a.r*a.shard+at(t)+u*T]=s[u]; } } }
  }
  __device__ void collect(int t) const {
    for(int k=1;k<N;k++){ int p=(a.r+k)%N; uint4 v[U];
#pragma unroll
      for(int u=0;u<U;u++) v[u]=recv(a.res[a.r]+p*a.shard+at(t)+u*T);
#pragma unroll
      for(int u=0;u<U;u++){ float4* q=a.grad[a.r]+2*(p*a.shard+at(t)+u*T); q[0]=make_float4(lo(v[u].x),hi(v[u].x),lo(v[u].y),hi(v[u].y)); q[1]=make_float4(lo(v[u].z),hi(v[u].z),lo(v[u].w),hi(v[u].w)); } }
  }
};
template<int N,bool NARROW> __global__ void __launch_bounds__(T,1) pairs(Avg a){
  Tile<N,NARROW> tile(a); int b=blockIdx.x, G=gridDim.x; unsigned long long base=a.call<<16; int x=threadIdx.x; bool peer=x<N&&x!=a.r;
  int mine=(a.tiles-b+G-1)/G; int extra=NARROW?2:0;
  for(int c=0;c<=mine+extra+ (NARROW?0:0);c++){
    if(c<mine) tile.contribute(c*G+b);
    __syncthreads();
    if(peer&&c<mine+extra) tellAll(a.flags[x]+((2*F+b)*8+a.r),base+c+1);
    if(c>0){ if(peer) await(a.flags[a.r]+((2*F+b)*8+x),base+c); if(peer) fence(); __syncthreads(); if(c-1<mine) tile.reduce((c-1)*G+b); if(NARROW&&c>=3) tile.collect((c-3)*G+b); }
  }
  __syncthreads();
  if(peer){ tellAll(a.flags[x]+((2*F+1024+b)*8+a.r),base+1); await(a.flags[a.r]+((2*F+1024+b)*8+x),base+1); fence(); }
  if(NARROW){ __syncthreads(); }
}
template<int N,bool NARROW> __global__ void __launch_bounds__(T,1) tickets(Avg a){
  Tile<N,NARROW> tile(a); __shared__ int taken; unsigned long long base=a.call<<16; int x=threadIdx.x; bool peer=x<N&&x!=a.r;
  unsigned* counter=a.counters+(a.call%8192)*2; int lane=0; int held[4]={-1,-1,-1,-1};
  for(bool more=true;more||held[1]>=0||held[2]>=0||held[3]>=0;){
    if(x==0) taken=more?atomicAdd(counter,1):a.tiles;
    __syncthreads();
    int t=taken; if(t>=a.tiles){ t=-1; more=false; }
    held[0]=t;
    if(t>=0) tile.contribute(t);
    __syncthreads();
    // what was reduced a turn ago is told with what was sent now
    if(peer){ if(t>=0) tellAll(a.flags[x]+(t*8+a.r),base+1); if(NARROW&&held[2]>=0) tellAll(a.flags[x]+((F+held[2])*8+a.r),base+1); }
    if(held[1]>=0){ if(peer){ await(a.flags[a.r]+(held[1]*8+x),base+1); fence(); } __syncthreads(); tile.reduce(held[1]); }
    if(NARROW&&held[3]>=0){ if(peer){ await(a.flags[a.r]+((F+held[3])*8+x),base+1); fence(); } __syncthreads(); tile.collect(held[3]); }
    held[3]=NARROW?held[2]:-1; held[2]=NARROW?held[1]:-1; held[1]=held[0];
  }
  __syncthreads();
  __shared__ bool last;
  if(x==0){ __threadfence_system(); last=atomicAdd(counter+1,1)==gridDim.x-1; }
  __syncthreads();
  if(last){ if(peer){ fence(); tellAll(a.flags[x]+((2*F+1024)*8+a.r),base+1); await(a.flags[a.r]+((2*F+1024)*8+x),base+1); fence(); } }
}
template<int N> void launch(const Avg&a,int kind,int blocks,cudaStream_t s){ switch(kind){ case 0: pairs<N,false><<<blocks,T,0,s>>>(a); break; case 1: tickets<N,false><<<blocks,T,0,s>>>(a); break; case 2: pairs<N,true><<<blocks,T,0,s>>>(a); break; case 3: tickets<N,true><<<blocks,T,0,s>>>(a); break; } }
static std::atomic<int> arrived{0}; static int n; static void meet(){ static std::atomic<int> gen{0}; int g=gen; if(++arrived==n){arrived=0;gen++;} else while(gen==g) std::this_thread::yield(); }
int main(int argc,char**argv){
  C(cudaGetDeviceCount(&n)); if(getenv("N")) n=atoi(getenv("N"));
  void* lib=dlopen("libcublas.so.12",RTLD_NOW); if(!lib){printf("%s\n",dlerror()); lib=dlopen("libcublas.so.13",RTLD_NOW); if(!lib){printf("%s\n",dlerror());return 1;}}
  *(void**)&create=dlsym(lib,"cublasCreate_v2"); *(void**)&setStream=dlsym(lib,"cublasSetStream_v2"); *(void**)&setWs=dlsym(lib,"cublasSetWorkspace_v2"); *(void**)&setMath=dlsym(lib,"cublasSetMathMode"); *(void**)&gemm=dlsym(lib,"cublasSgemm_v2"); *(void**)&batched=dlsym(lib,"cublasSgemmStridedBatched");
  cudaDriverEntryPointQueryResult q; C(cudaGetDriverEntryPointByVersion("cuStreamWriteValue32",(void**)&writeValue,12000,cudaEnableDefault,&q)); C(cudaGetDriverEntryPointByVersion("cuStreamWaitValue32",(void**)&waitValue,12000,cudaEnableDefault,&q));
  const int d=4096,rows=1024,L=8; const long wn=(long)d*d,xn=(long)rows*d;
  std::vector<std::vector<float*>> grad(n),stage(n); std::vector<unsigned long long*> flagmem(n); float* double_[8][4];
  std::vector<std::thread> ts; std::vector<double> ms(n);
  struct V{const char*name;int mode;int blocks;double volume;int split;};
  // mode 0 nothing, 1 copies only, 2 a kernel a layer, 3 resident, 4 resident without copies, 5 contributions only, 6 resident, held only
  std::vector<V> vs;
  vs.push_back({"alone",0,0,1,1});
  for(int b: {16,24,32,48}) { vs.push_back({"pairs float",10,b,1,1}); vs.push_back({"tickets float",11,b,1,1}); }
  for(int b: {16,24,32,48}) { vs.push_back({"pairs bf16",12,b,1,1}); vs.push_back({"tickets bf16",13,b,1,1}); }
  vs.push_back({"alone",0,0,1,1});
  for(int r=0;r<n;r++) ts.emplace_back([&,r]{
    C(cudaSetDevice(r)); for(int e=0;e<n;e++) if(e!=r) C(cudaDeviceEnablePeerAccess(e,0));
    auto mem=[&](long k){ float*p; C(cudaMalloc(&p,k*4)); C(cudaMemset(p,0,k*4)); return p; };
    std::vector<float*> W,G,S,X,Dl,M;
    for(int l=0;l<L;l++){ W.push_back(mem(wn)); G.push_back(mem(wn)); S.push_back(mem(wn)); }
    for(int l=0;l<=L;l++){ X.push_back(mem(xn)); Dl.push_back(mem(xn)); }
    { std::vector<float> h(wn); for(long i=0;i<wn;i++) h[i]=((i*2654435761u>>8)%2001-1000.f)/1000.f*0.03f; for(int l=0;l<L;l++) C(cudaMemcpy(W[l],h.data(),wn*4,cudaMemcpyHostToDevice)); C(cudaMemcpy(X[0],h.data(),xn*4,cudaMemcpyHostToDevice)); }
    grad[r]=G; stage[r]=S; unsigned* counters=(unsigned*)mem(1<<15); flagmem[r]=(unsigned long long*)mem(2*8*(2*F+4096)); double_[r][0]=mem(wn); double_[r][1]=mem(wn); double_[r][2]=mem(wn); double_[r][3]=mem(wn);
    int lo,hi; C(cudaDeviceGetStreamPriorityRange(&lo,&hi));
    cudaStream_t A,B,K,R,P; for(cudaStream_t*s: {&A,&B}) C(cudaStreamCreateWithFlags(s,cudaStreamNonBlocking)); for(cudaStream_t*s: {&K,&R,&P}) C(cudaStreamCreateWithPriority(s,cudaStreamNonBlocking,hi));
    H h; D(create(&h)); D(setMath(h,3)); float* parts=mem(xn*4); void*wsA=mem(8<<20),*wsB=mem(8<<20);
    unsigned* flags=(unsigned*)mem(1024); C(cudaDeviceSynchronize());
    std::vector<cudaEvent_t> ev(64); for(auto&e:ev) C(cudaEventCreateWithFlags(&e,cudaEventDisableTiming)); cudaEvent_t t0,t1; C(cudaEventCreate(&t0)); C(cudaEventCreate(&t1)); std::vector<std::array<cudaEvent_t,2>> te(8); for(auto&e:te){C(cudaEventCreate(&e[0]));C(cudaEventCreate(&e[1]));} std::vector<cudaEvent_t> back(8); for(auto&e:back) C(cudaEventCreateWithFlags(&e,cudaEventDisableTiming));
    float one=1,zero=0; unsigned base=0; unsigned long long call=0; int lastblocks=0;
    auto mul=[&](cudaStream_t s,void*ws,int ta,int tb,int m,int nn,int k,const float*a,const float*b,float*c,int lda,int ldb){ D(setStream(h,s)); D(setWs(h,ws,32<<20)); D(gemm(h,ta,tb,m,nn,k,&one,a,lda,b,ldb,&zero,c,m)); };
    for(auto&v:vs){
      C(cudaDeviceSynchronize()); 
      meet(); C(cudaMemset(counters,0,4<<15)); C(cudaDeviceSynchronize()); meet();
      long shard=(long)(wn/n*v.volume)/4*4;
      auto step=[&](int i){
        if(i>=8) C(cudaEventSynchronize(back[i%8]));
        All all; all.turn=flags; all.done=flags+64; all.count=flags+128; all.base=base; all.n=n;
        for(int k=0;k<L;k++){ int l=L-1-k; for(int p=0;p<n;p++) all.w[k].part[p]=(float4*)((p==r?G[l]:S[l])+p*shard); all.w[k].result=(float4*)(G[l]+r*shard); all.w[k].n=shard/4; }
        if(v.mode==3||v.mode==4){ C(cudaStreamWaitEvent(R,ev[0],0)); resident<<<v.blocks,512,0,R>>>(all); }
        for(int l=0;l<L;l++){ mul(B,wsB,1,0,d,rows,d,W[l],X[l],X[l+1],d,d); relu<<<xn/4/256,256,0,B>>>((float4*)X[l+1],xn/4); }
        C(cudaEventRecord(ev[1],B)); C(cudaStreamWaitEvent(A,ev[1],0));
        for(int k=0;k<L;k++){ int l=L-1-k;
          if(l>0){ const float* up=l==L-1?X[L]:Dl[l+1]; if(v.split==1) mul(A,wsA,0,0,d,rows,d,W[l],up,Dl[l],d,d); else { int part=d/v.split; D(setStream(h,A)); D(setWs(h,wsA,32<<20)); D(batched(h,0,0,d,rows,part,&one,W[l],d,(long long)part*d,up,d,part,&zero,parts,d,xn,v.split)); }
            mask<<<xn/4/256,256,0,A>>>((float4*)Dl[l],(float4*)X[l],xn/4,(float4*)parts,v.split); C(cudaEventRecord(ev[2+l],A)); }
          if(l<L-1) C(cudaStreamWaitEvent(B,ev[2+l+1],0));
          mul(B,wsB,0,1,d,d,rows,X[l],l==L-1?X[L]:Dl[l+1],G[l],d,d);
          if(v.mode>=10){ int kind=v.mode-10; bool nar=kind>=2; Avg av; av.call=++call; av.n=n; av.r=r; av.counters=counters; av.shard=wn/n/(nar?8:4); av.tiles=(int)(av.shard/(T*(nar?4:8))); if(!nar) av.shard=wn/n/4;
            for(int p=0;p<n;p++){ av.grad[p]=(float4*)grad[p][l]; av.stage[p]=(uint4*)double_[p][call&1]; av.res[p]=(uint4*)double_[p][2+(call&1)]; av.flags[p]=flagmem[p]; }
            C(cudaEventRecord(ev[12+l],B)); C(cudaStreamWaitEvent(R,ev[12+l],0)); if(n==2) launch<2>(av,kind,v.blocks,R); else if(n==4) launch<4>(av,kind,v.blocks,R); else launch<8>(av,kind,v.blocks,R); C(cudaGetLastError()); C(cudaEventRecord(ev[42+l],R)); if(v.split==9) {C(cudaEventRecord(te[k][1],R));} }
          else if(v.mode){
            C(cudaEventRecord(ev[12+l],B)); C(cudaStreamWaitEvent(K,ev[12+l],0));
            if(v.mode!=4) for(int j=1;j<n;j++){ int p=(r+j)%n; C(cudaMemcpyAsync(stage[p][l]+r*shard,G[l]+p*shard,shard*4,cudaMemcpyDeviceToDevice,K)); }
            if(v.mode==2){ C(cudaEventRecord(ev[22+l],K)); C(cudaStreamWaitEvent(R,ev[22+l],0)); reduce<<<v.blocks,512,0,R>>>(all.w[k],n); C(cudaEventRecord(ev[32+l],R)); C(cudaStreamWaitEvent(P,ev[32+l],0)); }
            else if(v.mode>=3&&v.mode!=5){ D(writeValue(K,(CUdeviceptr)all.turn,base+k+1,0)); D(waitValue(P,(CUdeviceptr)all.done,base+k+1,CU_STREAM_WAIT_VALUE_GEQ)); }
            else { C(cudaEventRecord(ev[22+l],K)); C(cudaStreamWaitEvent(P,ev[22+l],0)); }
            if(v.mode!=4&&v.mode!=5) for(int j=1;j<n;j++){ int p=(r+j)%n; C(cudaMemcpyAsync(grad[p][l]+r*shard,G[l]+r*shard,shard*4,cudaMemcpyDeviceToDevice,P)); }
            C(cudaEventRecord(ev[42+l],P));
          }
        }
        for(int k=0;k<L;k++){ int l=L-1-k; if(v.mode) C(cudaStreamWaitEvent(B,ev[42+l],0)); else if(l<L-1) {} update<<<wn/4/256,256,0,B>>>((float4*)W[l],(float4*)G[l],1e-12f,wn/4); }
        C(cudaEventRecord(ev[0],B)); C(cudaStreamWaitEvent(A,ev[0],0)); C(cudaEventRecord(back[i%8],B));
        base+=L;
      };
      for(int i=0;i<20;i++) step(i);
      C(cudaDeviceSynchronize()); meet();
      C(cudaEventRecord(t0,B)); for(int i=0;i<100;i++) step(i); C(cudaEventRecord(t1,B)); C(cudaDeviceSynchronize());
      float f; C(cudaEventElapsedTime(&f,t0,t1)); ms[r]=f/100; meet();
      float one_us=0; if(v.mode>=10){ int kind=v.mode-10; bool nar=kind>=2; meet(); for(int i=0;i<24;i++){ if(i==4) C(cudaEventRecord(t0,R)); Avg av; av.call=++call; av.n=n; av.r=r; av.counters=counters; av.shard=wn/n/(nar?8:4); av.tiles=(int)(av.shard/(T*(nar?4:8))); for(int p=0;p<n;p++){ av.grad[p]=(float4*)grad[p][i%8]; av.stage[p]=(uint4*)double_[p][call&1]; av.res[p]=(uint4*)double_[p][2+(call&1)]; av.flags[p]=flagmem[p]; } if(n==2) launch<2>(av,kind,v.blocks,R); else if(n==4) launch<4>(av,kind,v.blocks,R); else launch<8>(av,kind,v.blocks,R); } C(cudaEventRecord(t1,R)); C(cudaDeviceSynchronize()); C(cudaEventElapsedTime(&one_us,t0,t1)); one_us*=50; meet(); }
      if(r==0){ double w=0; for(double x:ms) w=std::max(w,x); printf("n%d dX in %d: %-28s blocks %2d: %.3f ms, one average by itself %.0f us\n",n,v.split,v.name,v.blocks,w,one_us); fflush(stdout); }
      meet();
    }
  });
  for(auto&t:ts) t.join();
}
