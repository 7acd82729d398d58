// Copy engines among all GPUs of one process, each to its others one after the other; plain, by graphs, and in conditional bodies.
#include <cstdio>
#include <vector>
#include <algorithm>
#include <cuda_runtime.h>
#define C(x) do{cudaError_t e_=(x); if(e_){printf("%s: %s line %d\n",#x,cudaGetErrorString(e_),__LINE__);fflush(stdout);exit(1);}}while(0)
__global__ void decide(cudaGraphConditionalHandle h, unsigned* word){ cudaGraphSetConditional(h, *word); }
__global__ void nothing(){}
__global__ void gate(volatile unsigned* go){ while(!*go); }
int main(){
  int n; C(cudaGetDeviceCount(&n)); if(getenv("N")) n=atoi(getenv("N"));
  const size_t big=(size_t)256<<20;
  std::vector<char*> buf(n); std::vector<cudaStream_t> s(n); std::vector<unsigned*> word(n);
  std::vector<cudaEvent_t> t0(n),t1(n); std::vector<std::vector<cudaEvent_t>> ph(n);
  unsigned* go; C(cudaHostAlloc(&go,4,cudaHostAllocMapped|cudaHostAllocPortable));
  for(int d=0;d<n;d++){ C(cudaSetDevice(d)); for(int e=0;e<n;e++) if(e!=d) C(cudaDeviceEnablePeerAccess(e,0));
    C(cudaMalloc(&buf[d],big*n)); C(cudaMalloc(&word[d],256)); C(cudaMemset(word[d],0,256)); C(cudaMemset(buf[d],d+1,big*n)); C(cudaStreamCreateWithFlags(&s[d],cudaStreamNonBlocking)); C(cudaEventCreate(&t0[d])); C(cudaEventCreate(&t1[d]));
    for(int i=0;i<64;i++){cudaEvent_t e; C(cudaEventCreateWithFlags(&e,cudaEventDisableTiming)); ph[d].push_back(e);} C(cudaDeviceSynchronize()); }
  auto measure=[&](const char*name,size_t each,auto f){
    std::vector<double> all;
    for(int rep=0;rep<6;rep++){
      *(volatile unsigned*)go=0;
      for(int d=0;d<n;d++){ C(cudaSetDevice(d)); gate<<<1,1,0,s[d]>>>(go); C(cudaEventRecord(t0[d],s[d])); }
      f();
      for(int d=0;d<n;d++){ C(cudaSetDevice(d)); C(cudaEventRecord(t1[d],s[d])); }
      *(volatile unsigned*)go=1;
      double worst=0; for(int d=0;d<n;d++){ C(cudaSetDevice(d)); C(cudaStreamSynchronize(s[d])); float ms; C(cudaEventElapsedTime(&ms,t0[d],t1[d])); worst=std::max<double>(worst,ms);} if(rep) all.push_back(worst);
    }
    std::sort(all.begin(),all.end()); double bytes=(double)each*(n-1);
    printf("%-34s n%d %6.1f MB each: %8.1f us  %.1f GB/s\n",name,n,each/1e6,all[2]*1e3,bytes/all[2]/1e6); fflush(stdout);
  };
  auto chain=[&](int d,size_t each,cudaGraph_t g,std::vector<cudaGraphNode_t> after){
    for(int k=1;k<n;k++){ int p=(d+k)%n; cudaGraphNode_t node; C(cudaGraphAddMemcpyNode1D(&node,g,after.data(),after.size(),buf[p]+d*big,buf[d]+d*big,each,cudaMemcpyDeviceToDevice)); after={node}; }
  };
  for(size_t each: {(size_t)2<<20,(size_t)8<<20,(size_t)32<<20,(size_t)64<<20,(size_t)128<<20,(size_t)256<<20}){
    measure("plain",each,[&]{ for(int k=1;k<n;k++) for(int d=0;d<n;d++){ int p=(d+k)%n; C(cudaSetDevice(d)); C(cudaMemcpyAsync(buf[p]+d*big,buf[d]+d*big,each,cudaMemcpyDeviceToDevice,s[d])); } });
    measure("lock-step by events",each,[&]{ for(int k=1;k<n;k++){ 
        for(int d=0;d<n;d++){ int p=(d+k)%n; C(cudaSetDevice(d)); C(cudaMemcpyAsync(buf[p]+d*big,buf[d]+d*big,each,cudaMemcpyDeviceToDevice,s[d])); C(cudaEventRecord(ph[d][k],s[d])); }
        for(int d=0;d<n;d++) for(int e=0;e<n;e++) if(e!=d){ C(cudaSetDevice(d)); C(cudaStreamWaitEvent(s[d],ph[e][k],0)); } } });
    std::vector<cudaGraphExec_t> gx(n);
    for(int d=0;d<n;d++){ C(cudaSetDevice(d)); cudaGraph_t g; C(cudaGraphCreate(&g,0)); chain(d,each,g,{}); C(cudaGraphInstantiate(&gx[d],g,0)); C(cudaGraphUpload(gx[d],s[d])); }
    measure("graph of copies",each,[&]{ for(int d=0;d<n;d++){ C(cudaSetDevice(d)); C(cudaGraphLaunch(gx[d],s[d])); } });
    for(int d=0;d<n;d++) C(cudaGraphExecDestroy(gx[d]));
  }
  // conditional
  for(unsigned value: {1u,0u}) for(size_t each: {(size_t)8<<20,(size_t)32<<20,(size_t)128<<20}){
    std::vector<cudaGraphExec_t> gx(n);
    for(int d=0;d<n;d++){ C(cudaSetDevice(d)); C(cudaMemcpy(word[d],&value,4,cudaMemcpyHostToDevice));
      for(int e=0;e<n;e++) if(e!=d) C(cudaMemset(buf[e]+d*big,0x55,big));
      cudaGraph_t g; C(cudaGraphCreate(&g,0)); cudaGraphConditionalHandle h; C(cudaGraphConditionalHandleCreate(&h,g,0,cudaGraphCondAssignDefault));
      cudaGraphNode_t kn; cudaKernelNodeParams kp={}; kp.func=(void*)decide; kp.gridDim=dim3(1); kp.blockDim=dim3(1); void* args[]={&h,&word[d]}; kp.kernelParams=args; C(cudaGraphAddKernelNode(&kn,g,nullptr,0,&kp));
      cudaGraphNodeParams p={}; p.type=cudaGraphNodeTypeConditional; p.conditional.handle=h; p.conditional.type=cudaGraphCondTypeIf; p.conditional.size=1;
      cudaGraphNode_t cn; C(cudaGraphAddNode(&cn,g,&kn,nullptr,1,&p)); cudaGraph_t body=p.conditional.phGraph_out[0];
      chain(d,each,body,{});
      cudaError_t e=cudaGraphInstantiate(&gx[d],g,0); if(e){ printf("conditional instantiate: %s\n",cudaGetErrorString(e)); return 0; } C(cudaGraphUpload(gx[d],s[d])); }
    measure(value?"conditional, taken":"conditional, not taken",each,[&]{ for(int d=0;d<n;d++){ C(cudaSetDevice(d)); C(cudaGraphLaunch(gx[d],s[d])); } });
    unsigned char c[2]; C(cudaMemcpy(c,buf[1]+0*big+each-2,2,cudaMemcpyDeviceToHost)); printf("  last byte at gpu 1 from gpu 0: %d (1 if copied, 85 if not)\n",c[1]);
    // capture into another graph
    cudaSetDevice(0); cudaGraph_t cap; C(cudaStreamBeginCapture(s[0],cudaStreamCaptureModeRelaxed)); cudaError_t e=cudaGraphLaunch(gx[0],s[0]); printf("  launch while capturing: %s\n",cudaGetErrorString(e)); cudaStreamEndCapture(s[0],&cap); cudaGetLastError();
    for(int d=0;d<n;d++) C(cudaGraphExecDestroy(gx[d]));
  }
}
