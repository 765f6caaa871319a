use std::fs;
fn main(){
  let mut bad=0;
  for path in std::env::args().skip(1){
    let text=fs::read_to_string(&path).unwrap();
    let dir=std::path::Path::new(&path).parent().unwrap().to_path_buf();
    let c=lang::pipeline::compile(&path,&text,&|p| fs::read_to_string(dir.join(p)).ok(),&Default::default());
    let t=std::time::Instant::now();
    let _=t;
    for d in &c.diagnostics { println!("{path}: {} {} @ {} [{}] {:?}",d.code,d.headline,c.sources.place(d.primary.span),d.primary.text,d.path.iter().map(|l|format!("{} {}",c.sources.place(l.span),l.text)).collect::<Vec<_>>()); }
    match &c.program { Some(p)=>{ match lang::ir::verify::verify(p){Ok(())=>{}, Err(e)=>{bad+=1; println!("{path}: VERIFY {:?}", e.iter().take(3).collect::<Vec<_>>());}} } None=>{ bad+=1; println!("{path}: NO PROGRAM"); } }
  }
  println!("bad {bad}");
}
