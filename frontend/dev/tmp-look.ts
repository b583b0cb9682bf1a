import { chromium } from "playwright-core";
const base="http://127.0.0.1:5173", out="/tmp/web/look";
const b=await chromium.launch({executablePath:"/usr/bin/chromium",args:["--no-sandbox","--disable-gpu","--disable-quic"]});
for (const scheme of ["dark","light"] as const){
const c=await b.newContext({colorScheme:scheme,viewport:{width:1440,height:900}}); const p=await c.newPage();
await p.goto(base+"/workloads"); await p.waitForTimeout(2000);
await p.getByRole("button",{name:"Submit"}).click(); await p.waitForTimeout(500);
await p.getByLabel("Manifest").fill("nothing"); await p.getByRole("button",{name:"Check only"}).click(); await p.waitForTimeout(600);
await p.screenshot({path:out+`/submit-error-${scheme}.png`});
await p.goto(base+"/"); await p.waitForTimeout(2500);
process.kill(Number(process.argv[2]),"SIGUSR2"); await p.waitForTimeout(14500); await p.screenshot({path:out+`/stale-${scheme}.png`}); process.kill(Number(process.argv[2]),"SIGUSR2"); await p.waitForTimeout(6000); 
}
await b.close();
