// Validates YAML files with yaml-language-server, as an editor would: node validate.cjs DIRECTORY-OF-THE-SERVER FILE... It prints a line for each finding, and
// what the server shows for the first key of each file.
const fs = require('fs')
const path = require('path')
const { pathToFileURL, fileURLToPath } = require('url')

const [prefix, ...files] = process.argv.slice(2)
const at = path.join(prefix, 'node_modules', 'yaml-language-server')
const { getLanguageService } = require(at)
const { TextDocument } = require(require.resolve('vscode-languageserver-textdocument', { paths: [at] }))

const silent = { send() {}, sendError() {}, sendTrack() {} }
const service = getLanguageService({
  schemaRequestService: async (uri) => fs.readFileSync(fileURLToPath(uri), 'utf8'),
  workspaceContext: { resolveRelativePath: (relative, resource) => new URL(relative, resource).toString() },
  telemetry: silent,
})
service.configure({ validate: true, hover: true, completion: true, customTags: [], schemas: [], yamlVersion: '1.2' })

async function main() {
  for (const file of files) {
    const text = fs.readFileSync(file, 'utf8')
    const document = TextDocument.create(pathToFileURL(file).toString(), 'yaml', 1, text)
    const name = path.basename(file)
    for (const { range, message } of await service.doValidation(document, false)) {
      console.log(`${name}:${range.start.line + 1}: ${message}`)
    }
    const line = text.split('\n').findIndex((l) => /^[a-z]/.test(l))
    const hover = await service.doHover(document, { line, character: 1 })
    console.log(`${name} shows ${JSON.stringify(hover ? hover.contents.value : '')}`)
  }
}

main().catch((err) => {
  console.error(err)
  process.exit(1)
})
