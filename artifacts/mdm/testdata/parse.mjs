// Parses PowerShell files with the grammar of the npm package tree-sitter-powershell below the directory that the first argument names. Prints, for each file, the
// number of hash tables in it, or every place that is no PowerShell; exit status 1 for those.
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const modules = path.join(process.argv[2], 'node_modules');
const { Parser, Language } = await import(pathToFileURL(path.join(modules, 'web-tree-sitter', 'web-tree-sitter.js')));
await Parser.init();
const parser = new Parser();
parser.setLanguage(await Language.load(path.join(modules, 'tree-sitter-powershell', 'tree-sitter-powershell.wasm')));
let bad = 0;
for (const file of process.argv.slice(3)) {
  let tables = 0;
  const walk = (node) => {
    if (node.isError || node.isMissing) {
      bad++;
      console.log(`${file}:${node.startPosition.row + 1}:${node.startPosition.column + 1}: ${node.isMissing ? 'missing ' + node.type : node.text.slice(0, 80)}`);
      return;
    }
    if (node.type === 'hash_literal_expression') tables++;
    node.children.forEach(walk);
  };
  walk(parser.parse(fs.readFileSync(file, 'utf8')).rootNode);
  console.log(`${tables} ${path.basename(file)}`);
}
process.exit(bad ? 1 : 0);
