-- Asks for the paths of the file named by PATHS, one after the other, for ever.
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
