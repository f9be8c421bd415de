/** The arrows of the house: http → commands/queries → writer → domain. Broken ones fail the lint step. */

const onlyFrom = (name, comment, to, allowed) => ({
  name,
  comment,
  severity: 'error',
  from: { path: '^src/', pathNot: allowed },
  to: { path: to },
});

const never = (name, comment, from, to, extra = {}) => ({
  name,
  comment,
  severity: 'error',
  from: { path: from },
  to: { path: to, ...extra },
});

const rooms = (...names) => `^src/(${names.join('|')})/`;
const packageNamed = (name) => `(^|/)node_modules/${name}/`;

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    {
      name: 'no-cycles',
      comment: 'types may refer to each other; code that runs may not',
      severity: 'error',
      from: { path: '^src/' },
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    {
      name: 'resolvable',
      comment: 'an import that leads nowhere, or is in no package.json',
      severity: 'error',
      from: { path: '^src/' },
      to: { couldNotResolve: true },
    },
    {
      name: 'no-dev-dependencies',
      comment: 'what runs may not need what only builds',
      severity: 'error',
      from: { path: '^src/' },
      to: {
        dependencyTypes: ['npm-dev'],
        dependencyTypesNot: ['type-only'],
        pathNot: packageNamed('@types/[^/]+'),
      },
    },
    never('src-knows-no-tests', 'tests depend on the service', '^src/', '^test/'),
    never(
      'domain-is-alone',
      'the rules of money know nothing of how they are run',
      rooms('domain'),
      '^src/',
      {
        pathNot: rooms('domain'),
      },
    ),
    {
      name: 'domain-is-pure',
      comment: 'no I/O, no clock, no framework: node:crypto and temporal-polyfill at most',
      severity: 'error',
      from: { path: rooms('domain') },
      to: { pathNot: ['^src/domain/', '^(node:)?crypto$', packageNamed('temporal-(polyfill|spec|utils)')] },
    },
    never('log-knows-no-read-models', 'they meet in the feed', rooms('event-store'), rooms('read-models')),
    never('read-models-know-no-log', 'they meet in the feed', rooms('read-models'), rooms('event-store')),
    onlyFrom('kurrentdb-client', 'one adapter knows it', packageNamed('@eventstore/db-client'), [
      '^src/event-store/kurrentdb/',
    ]),
    onlyFrom(
      'sql',
      'SQL stands in few places',
      [packageNamed('pg'), packageNamed('@types/pg')],
      [
        '^src/postgres/',
        '^src/event-store/postgres/',
        '^src/read-models/',
        '^src/(writer|alerts)/storage\\.ts$',
        '^src/(writer|alerts)/.*/storage\\.ts$',
        '^src/http/auth/storage\\.ts$',
      ],
    ),
    onlyFrom('nest', 'the framework stays at the edge', packageNamed('@nestjs/[^/]+'), [
      '^src/(main|boot)\\.ts$',
      '^src/(commands|queries|http)/',
      '\\.module\\.ts$',
    ]),
    never(
      'nobody-imports-the-edge',
      'http → commands/queries → writer → domain',
      rooms(
        'commands',
        'queries',
        'writer',
        'read-models',
        'event-store',
        'postgres',
        'prices',
        'alerts',
        'policy',
        'config',
      ),
      rooms('http', 'cli', 'client'),
      // a module wires rooms together
    ),
    never(
      'writer-is-below',
      'commands and queries use the writer',
      rooms('writer', 'event-store', 'postgres', 'read-models'),
      rooms('commands', 'queries'),
    ),
    never(
      'commands-do-not-read',
      'a command answers from the writer',
      rooms('commands'),
      rooms('read-models', 'event-store'),
    ),
    never('queries-do-not-write', 'a query changes nothing', rooms('queries'), rooms('commands')),
    never(
      'http-is-thin',
      'controllers go through commands and queries',
      rooms('http'),
      rooms('read-models', 'event-store/[^/]+'),
    ),
    never('postgres-is-below', 'it serves the others', rooms('postgres'), '^src/', {
      pathNot: rooms('postgres'),
    }),
    never('client-stands-alone', 'other services import it', rooms('client'), '^src/', {
      pathNot: rooms('client', 'domain'),
    }),
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'require', 'node', 'default', 'types'],
    },
  },
};
