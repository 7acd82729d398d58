// A training step (8 x 4096, 1024 rows, TF32 products) on all GPUs of one process, with the traffic of averages carried by copy
// engines and added up by few blocks. A trial of time: nobody waits for the others' contributions, so sums are of whatever lies there.
#include <atomic>
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
static int (*gemm)(H,int,int,int,int,int,const float*,const float*,int,const float*,int,const float*,float*,int);
static CUresult (*writeValue)(CUstream,CUdeviceptr,cuuint32_t,unsigned); static CUresult (*waitValue)(CUstream,CUdeviceptr,cuuint32_t,unsigned);
__global__ void relu(float4* x,long n){ long i=blockIdx.x*(long)blockDim.x+threadIdx.x; if(i<n){ float4 v=x[i]; v.x=fmaxf(v.x,0);v.y=fmaxf(v.y,0);v.z=fmaxf(v.z,0);v.w=fmaxf(v.w,0); x[i]=v; } }
__global__ void mask(float4* x,const float4* y,long n){ long i=blockIdx.x*(long)blockDim.x+threadIdx.x; if(i<n){ float4 v=x[i],w=y[i]; if(w.x<=0)v.x=0; if(w.y<=0)v.y=0; if(w.z<=0)v.z=0; if(w.w<=0)v.w=0; x[i]=v; } }
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
static std::atomic<int> arrived{0}; static int n; static void meet(){ static std::atomic<int> gen{0}; int g=gen; if(++arrived==n){arrived=0;gen++;} else while(gen==g) std::this_thread::yield(); }
int main(int argc,char**argv){
  C(cudaGetDeviceCount(&n)); if(getenv("N")) n=atoi(getenv("N"));
  void* lib=dlopen("libcublas.so.12",RTLD_NOW); if(!lib){printf("%s\n",dlerror()); lib=dlopen("libcublas.so.13",RTLD_NOW); if(!lib){printf("%s\n",dlerror());return 1;}}
  *(void**)&create=dlsym(lib,"cublasCreate_v2"); *(void**)&setStream=dlsym(lib,"cublasSetStream_v2"); *(void**)&setWs=dlsym(lib,"cublasSetWorkspace_v2"); *(void**)&setMath=dlsym(lib,"cublasSetMathMode"); *(void**)&gemm=dlsym(lib,"cublasSgemm_v2");
  cudaDriverEntryPointQueryResult q; C(cudaGetDriverEntryPointByVersion("cuStreamWriteValue32",(void**)&writeValue,12000,cudaEnableDefault,&q)); C(cudaGetDriverEntryPointByVersion("cuStreamWaitValue32",(void**)&waitValue,12000,cudaEnableDefault,&q));
  const int d=4096,rows=1024,L=8; const long wn=(long)d*d,xn=(long)rows*d;
  std::vector<std::vector<float*>> grad(n),stage(n);
  std::vector<std::thread> ts; std::vector<double> ms(n);
  struct V{const char*name;int mode;int blocks;double volume;};
  // mode 0 nothing, 1 copies only, 2 a kernel a layer, 3 resident, 4 resident without copies, 5 contributions only, 6 resident, held only
  std::vector<V> vs={{"alone",0,0,1},{"copies only",1,0,1},{"half the copies only",1,0,.5},{"contributions only",5,0,1}};
  for(int b: {4,8,16}) vs.push_back({"kernel a layer",2,b,1});
  for(int b: {2,4,6,8,12}) vs.push_back({"resident",3,b,1});
  for(int b: {4,8}) vs.push_back({"resident, half the volume",3,b,.5});
  for(int b: {4,8}) vs.push_back({"resident, no copies",4,b,1});
  vs.push_back({"alone",0,0,1});
  for(int r=0;r<n;r++) ts.emplace_back([&,r]{
    C(cudaSetDevice(r)); for(int e=0;e<n;e++) if(e!=r) C(cudaDeviceEnablePeerAccess(e,0));
    auto mem=[&](long k){ float*p; C(cudaMalloc(&p,k*4)); C(cudaMemset(p,0,k*4)); return p; };
    std::vector<float*> W,G,S,X,Dl,M;
    for(int l=0;l<L;l++){ W.push_back(mem(wn)); G.push_back(mem(wn)); S.push_back(mem(wn)); }
    for(int l=0;l<=L;l++){ X.push_back(mem(xn)); Dl.push_back(mem(xn)); }
    { std::vector<float> h(wn); for(long i=0;i<wn;i++) h[i]=((i*2654435761u>>8)%2001-1000.f)/1000.f*0.03f; for(int l=0;l<L;l++) C(cudaMemcpy(W[l],h.data(),wn*4,cudaMemcpyHostToDevice)); C(cudaMemcpy(X[0],h.data(),xn*4,cudaMemcpyHostToDevice)); }
    grad[r]=G; stage[r]=S;
    int lo,hi; C(cudaDeviceGetStreamPriorityRange(&lo,&hi));
    cudaStream_t A,B,K,R,P; for(cudaStream_t*s: {&A,&B}) C(cudaStreamCreateWithFlags(s,cudaStreamNonBlocking)); for(cudaStream_t*s: {&K,&R,&P}) C(cudaStreamCreateWithPriority(s,cudaStreamNonBlocking,hi));
    H h; D(create(&h)); D(setMath(h,3)); void*wsA=mem(8<<20),*wsB=mem(8<<20);
    unsigned* flags=(unsigned*)mem(1024); C(cudaDeviceSynchronize());
    std::vector<cudaEvent_t> ev(64); for(auto&e:ev) C(cudaEventCreateWithFlags(&e,cudaEventDisableTiming)); cudaEvent_t t0,t1; C(cudaEventCreate(&t0)); C(cudaEventCreate(&t1)); std::vector<cudaEvent_t> back(8); for(auto&e:back) C(cudaEventCreateWithFlags(&e,cudaEventDisableTiming));
    float one=1,zero=0; unsigned base=0; int lastblocks=0;
    auto mul=[&](cudaStream_t s,void*ws,int ta,int tb,int m,int nn,int k,const float*a,const float*b,float*c,int lda,int ldb){ D(setStream(h,s)); D(setWs(h,ws,32<<20)); D(gemm(h,ta,tb,m,nn,k,&one,a,lda,b,ldb,&zero,c,m)); };
    for(auto&v:vs){
      C(cudaDeviceSynchronize()); 
      if(v.blocks!=lastblocks){ C(cudaMemset(flags,0,1024)); base=0; lastblocks=v.blocks; C(cudaDeviceSynchronize()); }
      long shard=(long)(wn/n*v.volume)/4*4;
      auto step=[&](int i){
        if(i>=8) C(cudaEventSynchronize(back[i%8]));
        All all; all.turn=flags; all.done=flags+64; all.count=flags+128; all.base=base; all.n=n;
        for(int k=0;k<L;k++){ int l=L-1-k; for(int p=0;p<n;p++) all.w[k].part[p]=(float4*)((p==r?G[l]:S[l])+p*shard); all.w[k].result=(float4*)(G[l]+r*shard); all.w[k].n=shard/4; }
        if(v.mode==3||v.mode==4){ C(cudaStreamWaitEvent(R,ev[0],0)); resident<<<v.blocks,512,0,R>>>(all); }
        for(int l=0;l<L;l++){ mul(B,wsB,1,0,d,rows,d,W[l],X[l],X[l+1],d,d); relu<<<xn/4/256,256,0,B>>>((float4*)X[l+1],xn/4); }
        C(cudaEventRecord(ev[1],B)); C(cudaStreamWaitEvent(A,ev[1],0));
        for(int k=0;k<L;k++){ int l=L-1-k;
          if(l>0){ mul(A,wsA,0,0,d,rows,d,W[l],l==L-1?X[L]:Dl[l+1],Dl[l],d,d); mask<<<xn/4/256,256,0,A>>>((float4*)Dl[l],(float4*)X[l],xn/4); C(cudaEventRecord(ev[2+l],A)); }
          if(l<L-1) C(cudaStreamWaitEvent(B,ev[2+l+1],0));
          mul(B,wsB,0,1,d,d,rows,X[l],l==L-1?X[L]:Dl[l+1],G[l],d,d);
          if(v.mode){
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
      if(r==0){ double w=0; for(double x:ms) w=std::max(w,x); printf("n%d %-28s blocks %2d volume %.1f: %.3f ms\n",n,v.name,v.blocks,v.volume,w); fflush(stdout); }
      meet();
    }
  });
  for(auto&t:ts) t.join();
}
