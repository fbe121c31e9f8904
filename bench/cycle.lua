-- Requests the paths in the file $PATHS in turn, endlessly.
local paths = {}
function init(args)
  for line in io.lines(os.getenv("PATHS")) do
    paths[#paths + 1] = wrk.format("GET", line)
  end
end
local at = 0
request = function()
  at = at % #paths + 1
  return paths[at]
end
