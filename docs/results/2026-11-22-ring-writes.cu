// What kernels write: to all others by turns, to the next one, and half and half, as contributions to all with results along a ring.
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <algorithm>
#include <cuda_runtime.h>
#define C(x) do{cudaError_t e_=(x); if(e_){printf("%s: %s line %d\n",#x,cudaGetErrorString(e_),__LINE__);exit(1);}}while(0)
struct A{ uint4* to[8]; uint4* own; const uint4* from; int rounds; int others; int mode; };
template<int U> __global__ void __launch_bounds__(512) go(A a){
  size_t tile=U*512; size_t slots=((size_t)64<<20)/16/tile/gridDim.x; // tiles per block in 64 MB
  for(int p=0;p<a.rounds;p++){
    int q=p/2; int k; uint4* base;
    if(a.mode==0) k=(p+blockIdx.x)%a.others; else if(a.mode==1) k=0; else k = (p&1)?0:(q+blockIdx.x)%a.others;
    uint4* to=a.to[k]; size_t at=((p%slots)*gridDim.x+blockIdx.x)*tile+threadIdx.x; uint4 v[U];
#pragma unroll
    for(int u=0;u<U;u++) v[u]=a.from[at+u*512];
#pragma unroll
    for(int u=0;u<U;u++) asm volatile("st.global.v4.u32 [%0],{%1,%2,%3,%4};"::"l"(to+at+u*512),"r"(v[u].x),"r"(v[u].y),"r"(v[u].z),"r"(v[u].w):"memory");
  }
}
int main(){
  int n; C(cudaGetDeviceCount(&n)); if(getenv("N")) n=atoi(getenv("N"));
  std::vector<char*> src(n),dst(n); std::vector<cudaStream_t> s(n); std::vector<cudaEvent_t> t0(n),t1(n);
  for(int d=0;d<n;d++){ C(cudaSetDevice(d)); for(int e=0;e<n;e++) if(e!=d) C(cudaDeviceEnablePeerAccess(e,0));
    C(cudaMalloc(&src[d],80<<20)); C(cudaMalloc(&dst[d],(size_t)n*(80<<20))); C(cudaMemset(src[d],1,80<<20)); C(cudaStreamCreate(&s[d])); C(cudaEventCreate(&t0[d])); C(cudaEventCreate(&t1[d])); }
  auto run=[&](const char*name,void(*f)(A),int U,int blocks,int mode){
    size_t tile=(size_t)U*512*16; int rounds=(int)(((size_t)1536<<20)/tile/blocks); std::vector<double> all;
    for(int rep=0;rep<7;rep++){
      for(int d=0;d<n;d++){ C(cudaSetDevice(d)); A a; a.others=n-1; for(int k=0;k<n-1;k++) a.to[k]=(uint4*)(dst[(d+1+k)%n]+(size_t)d*(80<<20)); a.from=(uint4*)src[d]; a.rounds=rounds; a.mode=mode; C(cudaEventRecord(t0[d],s[d])); f<<<blocks,512,0,s[d]>>>(a); C(cudaEventRecord(t1[d],s[d])); }
      double w=0; for(int d=0;d<n;d++){ C(cudaSetDevice(d)); C(cudaStreamSynchronize(s[d])); float ms; C(cudaEventElapsedTime(&ms,t0[d],t1[d])); w=std::max<double>(w,ms);} if(rep) all.push_back(w);
    }
    std::sort(all.begin(),all.end()); printf("%s n%d blocks %d x %d vectors: %.1f GB/s\n",name,n,blocks,U,(double)rounds*tile*blocks/all[3]/1e6); fflush(stdout);
  };
  for(int b: {128,132}) { run("to all    ",go<4>,4,b,0); run("to next   ",go<4>,4,b,1); run("half, half",go<4>,4,b,2); run("to all    ",go<2>,2,2*b,0); run("half, half",go<2>,2,2*b,2); run("half, half",go<8>,8,b,2);}
}
